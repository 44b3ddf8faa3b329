#pragma once
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

namespace cudp {

/// The signals that ask for an end: SIGINT, SIGTERM, SIGHUP and SIGUSR1, by which schedulers
/// announce the end of a job. A SIGHUP that was ignored at the start (nohup) stays ignored.

/// From now on signals that ask for an end are not heard: another process hears them.
void hear_no_signals();

/// While one lives, signals that ask for an end wait: for the moments in which processes are made.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

/// While one lives, a signal that asks for an end ends the process at once with Exit::again, one
/// line on stderr and no unfinished file, unless an InterruptWatch lives too. One at a time. It has
/// a thread: processes are forked before.
class EndOnSignal {
 public:
  /// line: of the user, without a line break.
  explicit EndOnSignal(const std::string& line);
  ~EndOnSignal();
  EndOnSignal(const EndOnSignal&) = delete;
  EndOnSignal& operator=(const EndOnSignal&) = delete;

 private:
  std::thread thread_;
};

/// Another line for the user, from now on. Nothing where no EndOnSignal lives.
void set_interrupt_line(const std::string& line);

/// While one lives, no signal ends the process: files are being changed. Moments, not seconds.
class FilesInChange {
 public:
  FilesInChange();
  ~FilesInChange();
  FilesInChange(const FilesInChange&) = delete;
  FilesInChange& operator=(const FilesInChange&) = delete;
};

/// A file or a folder that EndOnSignal removes if it ends the process while this lives. Made,
/// filled and moved under FilesInChange.
class Unfinished {
 public:
  enum class Remove { all, if_empty };
  explicit Unfinished(const std::filesystem::path& path, Remove what = Remove::all);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  std::filesystem::path path_;  ///< absolute
};

/// While one lives, a signal that asks for an end asks the training loop to stop after the steps in
/// progress; a second one ends the process at once, with Exit::again.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool requested() const;
};

}  // namespace cudp
