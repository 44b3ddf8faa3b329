#pragma once
// The whole program in a process of its own, with a release observer that records all released
// values, or replaces them with those recorded in another run.
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cli/commands.hpp"
#include "runtime/gate/release_observer.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {

/// Ending of a run from outside, at the moment the n-th of its steps is released (0: not at all).
struct Ending {
  int signal = 0;
  std::size_t at = 0;
};

/// Observer that records released values in a file, each after a line with its public properties.
class RecordingObserver : public ReleaseObserver {
 public:
  RecordingObserver(const std::string& file, Ending ending)
      : out_(file, std::ios::binary | std::ios::app), ending_(ending) {}

  static std::string describe(const ReleasedValue& w, std::size_t bytes) {
    return fmt::format("{}, stream {}, {}: grid {:a}, noise {:a}, sensitivity {:a}, {} bytes",
                       w.name, static_cast<int>(w.purpose), w.step, w.grid, w.noise_std,
                       w.sensitivity, bytes);
  }

  void on_release(const ReleasedValue& what, std::span<std::byte> values) override {
    out_ << describe(what, values.size()) << '\n';
    out_.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size()));
    out_.flush();
    if (what.purpose == Stream::noise && ++steps_ == ending_.at) ::raise(ending_.signal);
  }

 private:
  std::ofstream out_;
  Ending ending_;
  std::size_t steps_ = 0;
};

/// Observer that replaces released values with recorded ones, from where the last process stopped,
/// and writes differences of public properties to a file.
class ReplayingObserver : public ReleaseObserver {
 public:
  ReplayingObserver(const std::string& file, const std::string& position,
                    const std::string& differences, Ending ending)
      : in_(file, std::ios::binary),
        position_(position),
        differences_(differences, std::ios::app),
        ending_(ending) {
    std::streamoff at = 0;
    std::ifstream(position_) >> at;
    in_.seekg(at);
  }

  void on_release(const ReleasedValue& what, std::span<std::byte> values) override {
    const std::string now = RecordingObserver::describe(what, values.size());
    std::string recorded;
    std::getline(in_, recorded);
    if (recorded != now) {
      differences_ << "recorded: " << recorded << "\nnow: " << now << std::endl;
      ::_exit(99);
    }
    in_.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size()));
    std::ofstream(position_) << static_cast<std::streamoff>(in_.tellg());
    if (what.purpose == Stream::noise && ++steps_ == ending_.at) ::raise(ending_.signal);
  }

 private:
  std::ifstream in_;
  std::string position_;
  std::ofstream differences_;
  Ending ending_;
  std::size_t steps_ = 0;
};

struct Ended {
  int exit = 0;  ///< exit code, or minus the signal that ended it
  std::string out;
  std::string err;
};

/// Runs `cudp ARGUMENTS` with `folder` as working folder, with the release observer that
/// `make_release_observer` makes in the new process.
inline Ended run_observed(const std::filesystem::path& folder,
                          const std::vector<std::string>& arguments,
                          const std::function<ReleaseObserver*()>& make_release_observer) {
  const std::string out = folder / "stdout";
  const std::string err = folder / "stderr";
  const pid_t child = ::fork();
  if (child == 0) {
    std::filesystem::current_path(folder);
    for (const auto& [path, to] : {std::pair{out, STDOUT_FILENO}, std::pair{err, STDERR_FILENO}}) {
      const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      if (file < 0 || ::dup2(file, to) < 0) ::_exit(98);
    }
    ReleaseObserver* const release_observer = make_release_observer();
    std::vector<std::string> words = arguments;
    words.insert(words.begin(), "cudp");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    const int code = run_command_line(static_cast<int>(argv.size()), argv.data(), release_observer);
    std::fflush(nullptr);
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  Ended ended{WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), content_of(out),
              content_of(err)};
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return ended;
}

}  // namespace cudp
