#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "runtime/base/error.hpp"
#include "runtime/base/interrupt.hpp"

namespace cudp {

/// A child process that has ended: its number, exit code and error message.
struct EndedChild {
  std::size_t number = 0;  ///< argument `number` of start()
  Exit code = Exit::ok;
  std::string message;  ///< message of the error with which the child ended; "" if it succeeded
};

/// Child processes of this process, each of which does one piece of work, such as a training.
/// Requires that this process has only one thread. While this object exists, interrupt signals to
/// this process are queued, and wait() reports them.
class ChildProcesses {
 public:
  ChildProcesses() = default;
  ~ChildProcesses();  ///< Ends and awaits all children.
  ChildProcesses(const ChildProcesses&) = delete;
  ChildProcesses& operator=(const ChildProcesses&) = delete;

  /// Starts a child process that calls `work` and exits. If `work` throws, the child's message and
  /// exit code are those of the exception. number: chosen by the caller; ended() returns it with
  /// the child. The argument of `work` is a queue of the signals to the child: `work` must call its
  /// release() once it has installed its own handlers. Throws Error if the process cannot be
  /// created.
  void start(std::size_t number, const std::function<void(const QueuedSignals&)>& work);
  std::size_t running() const { return children_.size(); }
  /// Waits until a child ends or this process receives an interrupt signal. Returns true if it
  /// received a signal.
  bool wait();
  /// Sends SIGTERM to all child processes, so that they stop; a training stops with a checkpoint.
  void interrupt() const;
  /// Returns the child processes that have ended since the last call of this function.
  std::vector<EndedChild> ended();

 private:
  /// A child process that has not ended yet.
  struct Child {
    std::size_t number;
    pid_t process;
    int errors;  ///< read end of the pipe for its error message
  };

  QueuedSignals signals_;
  std::vector<Child> children_;
};

/// Calls `work` in a child process and returns its result. If `work` throws, throws Error with the
/// same message and exit code. If a signal ends this process through an EndOnSignal, the child is
/// ended, too.
std::string answer_of_child(const std::function<std::string()>& work);

}  // namespace cudp
