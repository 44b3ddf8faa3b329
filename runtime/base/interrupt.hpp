#pragma once

namespace cudp {

/// While one lives, SIGINT and SIGTERM ask the training loop to stop after the steps in progress; a
/// second signal ends the process at once.
class InterruptWatch {
 public:
  InterruptWatch();
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

  bool requested() const;
};

}  // namespace cudp
