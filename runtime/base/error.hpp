#pragma once
#include <stdexcept>
#include <string>

namespace cudp {

/// Exit codes of the program cudp.
enum class Exit : int {
  ok = 0,
  failure = 1,
  bad_input = 2,
  over_budget = 3,
  again = 75  ///< interrupted; the same command continues the run (EX_TEMPFAIL of sysexits.h)
};

/// File and line of a function call, for error messages. Uses compiler builtins, because
/// std::source_location does not exist under nvcc 13.0 with GCC 12.
struct Where {
  const char* file;
  int line;
  static constexpr Where here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
    return {f, l};
  }
};

/// An error that is shown to the user as one line: what went wrong, with which values.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& what, Exit code = Exit::failure)
      : std::runtime_error(what), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

/// Error in the user's input or usage: "FILE, POSITION: expected ..., found ...".
class InputError : public Error {
 public:
  explicit InputError(const std::string& what) : Error(what, Exit::bad_input) {}
};

/// Error: the privacy budget does not suffice for what was requested.
class BudgetError : public Error {
 public:
  explicit BudgetError(const std::string& what) : Error(what, Exit::over_budget) {}
};

/// Throws Error with the call site and the text `what` if `ok` is false. For conditions that can
/// only be false because of a bug in cudp.
inline void ensure(bool ok, const char* what, Where at = Where::here()) {
  if (!ok) throw Error(std::string(what) + " [" + at.file + ":" + std::to_string(at.line) + "]");
}

}  // namespace cudp
