#include "runtime/sweep/children.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cudp {
namespace {

/// Writes the whole text to a file descriptor. If the process that reads it has ended, stops
/// without an error.
void write_text(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_all(int file) {
  std::string text;
  std::array<char, 4096> bytes{};
  for (;;) {
    const ssize_t n = ::read(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

/// Calls `work`, and returns how it ended: the message of its exception ("" if it threw none) and
/// the exit code.
std::pair<std::string, Exit> outcome_of(const std::function<void()>& work) {
  try {
    work();
    return {"", Exit::ok};
  } catch (const Error& e) {
    return {e.what(), e.code()};
  } catch (const std::bad_alloc&) {
    return {"out of memory", Exit::failure};
  } catch (const std::exception& e) {
    return {e.what(), Exit::failure};
  }
}

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Error(std::string("no pipe for a child process: ") + std::strerror(errno));
  return ends;
}

pid_t fork_child() {
  const pid_t process = ::fork();
  if (process < 0) throw Error(std::string("no child process: ") + std::strerror(errno));
  return process;
}

/// Prepares a child process; called in it. The child gets SIGTERM if its parent ends, and then
/// stops with a checkpoint. It is put into a process group of its own, so that a terminal sends
/// signals to the parent only, which passes them on.
void become_child(pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(static_cast<int>(Exit::again));
}

EndedChild ended_with(std::size_t number, int status, std::string message) {
  if (WIFSIGNALED(status))
    return {number, Exit::failure, fmt::format("was ended by signal {}", WTERMSIG(status))};
  const auto code = static_cast<Exit>(WEXITSTATUS(status));
  if (code != Exit::ok && message.empty())
    message = fmt::format("ended with exit code {}", WEXITSTATUS(status));
  return {number, code, std::move(message)};
}

}  // namespace

ChildProcesses::~ChildProcesses() {
  interrupt();
  for (const Child& c : children_) {
    ::waitpid(c.process, nullptr, 0);
    ::close(c.errors);
  }
}

void ChildProcesses::start(std::size_t number,
                           const std::function<void(const QueuedSignals&)>& work) {
  const std::array<int, 2> errors = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t process = fork_child();
  if (process > 0) {
    ::close(errors[1]);
    children_.push_back({number, process, errors[0]});
    return;
  }
  become_child(parent);
  // Discards everything that the child prints, e.g. lines of libraries and of EndOnSignal. Only the
  // parent prints output.
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  for (const int file : {STDOUT_FILENO, STDERR_FILENO})
    if (nothing >= 0) ::dup2(nothing, file);
  const auto [message, code] = outcome_of([&] { work(signals_); });
  write_text(errors[1], message);
  ::_exit(static_cast<int>(code));
}

bool ChildProcesses::wait() { return signals_.wait(); }

void ChildProcesses::interrupt() const {
  for (const Child& c : children_) ::kill(c.process, SIGTERM);
}

std::vector<EndedChild> ChildProcesses::ended() {
  std::vector<EndedChild> all;
  std::erase_if(children_, [&](const Child& c) {
    int status = 0;
    if (::waitpid(c.process, &status, WNOHANG) != c.process) return false;
    all.push_back(ended_with(c.number, status, read_all(c.errors)));
    ::close(c.errors);
    return true;
  });
  return all;
}

std::string answer_of_child(const std::function<std::string()>& work) {
  const std::array<int, 2> answer = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t process = fork_child();
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(static_cast<int>(Exit::failure));
    std::string text;
    const auto [message, code] = outcome_of([&] { text = work(); });
    write_text(answer[1], code == Exit::ok ? text : message);
    ::_exit(static_cast<int>(code));
  }
  ::close(answer[1]);
  std::string text = read_all(answer[0]);
  ::close(answer[0]);
  int status = 0;
  ::waitpid(process, &status, 0);
  const EndedChild child = ended_with(0, status, text);
  if (child.code != Exit::ok) throw Error(child.message, child.code);
  return text;
}

}  // namespace cudp
