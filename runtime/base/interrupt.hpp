#pragma once

namespace cudp {

/// From now on SIGUSR1, by which schedulers announce the end of a job, ends the process with
/// Exit::again where nothing would be lost: outside of an InterruptWatch.
void end_on_announcement();

/// From now on signals that ask for an end are not heard: another process hears them.
void hear_no_signals();

/// While one lives, SIGINT, SIGTERM and SIGUSR1 ask the training loop to stop after the steps in
/// progress; a second signal ends the process at once.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool requested() const;
};

}  // namespace cudp
