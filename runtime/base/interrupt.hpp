#pragma once
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include <sys/types.h>

namespace cudp {

/// In this file, the interrupt signals are SIGINT, SIGTERM, SIGHUP and SIGUSR1 (which schedulers
/// send before the end of a job). A SIGHUP that was ignored at the start (nohup) stays ignored.

/// Ignores interrupt signals from now on. For a process that is about to end, or for which another
/// process handles the signals.
void ignore_signals();

/// Blocks interrupt signals while an object lives; signals that arrive are delivered afterwards.
/// Used while processes or threads are started.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Queues interrupt signals, and the signal that a child process has ended, while an object lives;
/// wait() returns them. Requires that the process has one thread.
class QueuedSignals {
 public:
  QueuedSignals();
  ~QueuedSignals();
  QueuedSignals(const QueuedSignals&) = delete;
  QueuedSignals& operator=(const QueuedSignals&) = delete;

  /// Waits for a signal. Returns true for an interrupt signal, false if children may have ended.
  bool wait() const;
  /// Stops queueing signals, so that they are delivered normally again. For a forked child process,
  /// in which this object's destructor must not run.
  void release() const;

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

/// Ends the process if an interrupt signal arrives while this object exists: at once, with
/// Exit::again and one line on stderr, after unfinished files are removed. While an InterruptWatch
/// exists, the InterruptWatch handles the signals instead. There may be only one EndOnSignal at a
/// time. The constructor starts a thread, so processes must be forked before this object is made.
class EndOnSignal {
 public:
  /// Starts to handle interrupt signals. line: text that is printed on stderr when a signal ends
  /// the process, without a line break.
  explicit EndOnSignal(const std::string& line);
  ~EndOnSignal();
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

 private:
  std::thread thread_;
};

/// Replaces the line that EndOnSignal prints. Has no effect if there is no EndOnSignal.
void set_interrupt_line(const std::string& line);

/// Sets a log file. If a signal ends the process, EndOnSignal appends the line that it prints to
/// this file, with the time before it. Has no effect if there is no EndOnSignal.
void set_interrupt_log(const std::filesystem::path& file);

/// Function that formats a message as a log line. level: info, warning or error.
using LogLineForm = std::string (*)(const std::string& level, const std::string& message);

/// Sets the function that formats the line which EndOnSignal prints and appends to the log file;
/// null: the line is plain text.
void set_interrupt_form(LogLineForm form);

/// Postpones the end of the process by an interrupt signal while this object exists, because files
/// are being changed. Keep an object for moments, not seconds.
class FilesInChange {
 public:
  FilesInChange();
  ~FilesInChange();
  FilesInChange(const FilesInChange&) = delete;
  FilesInChange& operator=(const FilesInChange&) = delete;
};

/// A file or folder that EndOnSignal removes if it ends the process while this object lives.
/// Create, fill and move the file only while a FilesInChange object lives.
class UnfinishedFile {
 public:
  enum class Remove { all, if_empty };
  explicit UnfinishedFile(const std::filesystem::path& path, Remove what = Remove::all);
  ~UnfinishedFile();
  UnfinishedFile(const UnfinishedFile&) = delete;
  UnfinishedFile& operator=(const UnfinishedFile&) = delete;

 private:
  std::filesystem::path path_;  ///< absolute path of the file or folder
};

/// A child process that is killed if EndOnSignal ends this process while the object lives;
/// unfinished files are removed after that. Start the child, and wait for it, only while a
/// FilesInChange object lives.
class UnfinishedChild {
 public:
  explicit UnfinishedChild(pid_t child);
  ~UnfinishedChild();
  UnfinishedChild(const UnfinishedChild&) = delete;
  UnfinishedChild& operator=(const UnfinishedChild&) = delete;

 private:
  pid_t child_;
};

/// Stops a training on an interrupt signal. While an object lives, the first signal only makes
/// requested() return true, so that the training loop stops after the steps in progress. A second
/// signal ends the process at once, with Exit::again.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool requested() const;
};

}  // namespace cudp
