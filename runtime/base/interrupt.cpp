#include "runtime/base/interrupt.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <map>
#include <mutex>
#include <set>
#include <system_error>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/error.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

/// The interrupt signals, which ask the program to end.
constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// A signal handler may use static storage only.
volatile std::sig_atomic_t watched = 0;         // whether an InterruptWatch lives
volatile std::sig_atomic_t stop_requested = 0;  // whether a signal has requested the stop
std::atomic<int> wake_up = -1;  // write end of the pipe to the thread of EndOnSignal
static_assert(std::atomic<int>::is_always_lock_free);

std::array<struct sigaction, kSignals.size()> before_watch, before_end;

/// Returns the mutex that protects the state of EndOnSignal and the files that EndOnSignal may
/// remove. Code that changes this state or these files must lock the mutex; FilesInChange does so.
std::recursive_mutex& changes() {
  static std::recursive_mutex mutex;
  return mutex;
}

/// What EndOnSignal does when a signal ends the process: it prints and logs `line`, formatted by
/// `form`, kills `children` and removes `unfinished`. Protected by the mutex changes().
struct Ending {
  std::string line;
  fs::path log;
  LogLineForm form = nullptr;
  std::map<fs::path, UnfinishedFile::Remove> unfinished;
  std::set<pid_t> children;
};

Ending& ending() {
  static Ending e;
  return e;
}

void hear(int) {
  if (watched != 0 && stop_requested == 0) {
    stop_requested = 1;
    return;
  }
  const int to = wake_up.load();
  if (to < 0) ::_exit(static_cast<int>(Exit::again));
  const int reason = errno;
  (void)!::write(to, "s", 1);
  errno = reason;
}

void listen(std::array<struct sigaction, kSignals.size()>& before) {
  struct sigaction action {};
  action.sa_handler = hear;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before[i]);
    if (kSignals[i] == SIGHUP && before[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

/// Removes the signal handlers that listen() installed: restores `before`, the actions that the
/// signals had. An action that was changed in the meantime, e.g. to ignore the signal, is kept.
void listen_no_more(const std::array<struct sigaction, kSignals.size()>& before) {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction now {};
    sigaction(kSignals[i], nullptr, &now);
    if (now.sa_handler == hear) sigaction(kSignals[i], &before[i], nullptr);
  }
}

/// Appends a line to an existing log file, in the form of the Reporter's log lines. Ignores errors,
/// because the process is about to end.
void append_to_log(const fs::path& log, const std::string& line) {
  const int file = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  if (ending().form != nullptr) {
    const std::string text = ending().form("error", line) + "\n";
    (void)!::write(file, text.data(), text.size());
    ::close(file);
    return;
  }
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  std::array<char, 32> time{};
  std::strftime(time.data(), time.size(), "%Y-%m-%d %H:%M:%S", &local);
  const std::string text = std::string(time.data()) + " info: " + line + "\n";
  (void)!::write(file, text.data(), text.size());
  ::close(file);
}

[[noreturn]] void end_now() {
  const std::lock_guard lock(changes());
  for (const pid_t child : ending().children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
  const auto& unfinished = ending().unfinished;
  // The map is ordered by path and read in reverse, so the content of a folder goes before the
  // folder.
  for (auto at = unfinished.rbegin(); at != unfinished.rend(); ++at) {
    std::error_code ignored;
    if (at->second == UnfinishedFile::Remove::all)
      fs::remove_all(at->first, ignored);
    else
      fs::remove(at->first, ignored);
  }
  if (!ending().log.empty()) append_to_log(ending().log, ending().line);
  // Overwrites a progress bar.
  const std::string line = (::isatty(STDERR_FILENO) == 1 ? "\r\033[K" : "") +
                           (ending().form != nullptr ? ending().form("error", ending().line)
                                                     : "cudp: " + ending().line) +
                           "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(static_cast<int>(Exit::again));
}

}  // namespace

void ignore_signals() {
  for (const int signal : kSignals) (void)std::signal(signal, SIG_IGN);
}

BlockedSignals::BlockedSignals() {
  sigset_t all;
  sigemptyset(&all);
  for (const int signal : kSignals) sigaddset(&all, signal);
  ::pthread_sigmask(SIG_BLOCK, &all, &before_);
}

BlockedSignals::~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

QueuedSignals::QueuedSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGCHLD);
  for (const int signal : kSignals) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    // A blocked signal is queued even if it is ignored. So an ignored SIGHUP (nohup) is not
    // blocked.
    if (signal != SIGHUP || now.sa_handler != SIG_IGN) sigaddset(&signals_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

QueuedSignals::~QueuedSignals() { release(); }

bool QueuedSignals::wait() const {
  for (;;) {
    const int signal = ::sigwaitinfo(&signals_, nullptr);
    if (signal > 0) return signal != SIGCHLD;
  }
}

void QueuedSignals::release() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

EndOnSignal::EndOnSignal(const std::string& line) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "a pipe for signals");
  set_interrupt_line(line);
  const BlockedSignals blocked;  // The new thread inherits the blocked signals; other threads
                                 // handle them.
  thread_ = std::thread([from = pipe[0]] {
    char byte = 0;
    ssize_t n = -1;
    while ((n = ::read(from, &byte, 1)) < 0 && errno == EINTR) {
    }
    if (n == 1) end_now();
    ::close(from);
  });
  wake_up = pipe[1];
  listen(before_end);
}

EndOnSignal::~EndOnSignal() {
  listen_no_more(before_end);
  ::close(wake_up.exchange(-1));
  thread_.join();
}

void set_interrupt_line(const std::string& line) {
  const FilesInChange lock;
  ending().line = line;
}

void set_interrupt_log(const fs::path& file) {
  const FilesInChange lock;
  ending().log = file;
}

void set_interrupt_form(LogLineForm form) {
  const FilesInChange lock;
  ending().form = form;
}

FilesInChange::FilesInChange() { changes().lock(); }
FilesInChange::~FilesInChange() { changes().unlock(); }

UnfinishedFile::UnfinishedFile(const fs::path& path, Remove what) : path_(fs::absolute(path)) {
  const FilesInChange lock;
  ending().unfinished.emplace(path_, what);
}

UnfinishedFile::~UnfinishedFile() {
  const FilesInChange lock;
  ending().unfinished.erase(path_);
}

UnfinishedChild::UnfinishedChild(pid_t child) : child_(child) {
  const FilesInChange lock;
  ending().children.insert(child_);
}

UnfinishedChild::~UnfinishedChild() {
  const FilesInChange lock;
  ending().children.erase(child_);
}

InterruptWatch::InterruptWatch() {
  stop_requested = 0;
  watched = 1;
  listen(before_watch);
}

InterruptWatch::~InterruptWatch() {
  watched = 0;
  listen_no_more(before_watch);
}

bool InterruptWatch::requested() const { return stop_requested != 0; }

}  // namespace cudp
