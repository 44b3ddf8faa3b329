#pragma once
#include <memory>
#include <string>
#include <vector>

namespace cudp {

/// A copy of a process's environment variables, for programs that it starts.
class Environment {
 public:
  /// Copies the variables of this process. No other thread may change them meanwhile.
  Environment();

  /// Returns the path of a program that PATH names, as a shell finds it; empty if there is none.
  std::string find_program(const std::string& name) const;
  /// Returns the variables as exec() and posix_spawn() take them: "NAME=value", ended by a null
  /// pointer. They are valid while this object lives.
  std::vector<char*> variables() const;

 private:
  std::vector<std::string> variables_;
};

/// Returns the environment for programs that are started now: the copy that keep_environment() made
/// last, or if it was never called, that of this moment.
std::shared_ptr<const Environment> current_environment();

/// Copies the environment for current_environment(), from now until the next call. For a library in
/// a process whose other threads change environment variables: the caller must know that none of
/// them does so now (in Python because it holds the GIL), while a thread that starts a program
/// later cannot know.
void keep_environment();

}  // namespace cudp
