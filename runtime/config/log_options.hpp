#pragma once
#include <string>

namespace cudp {

/// Settings for watching a training. They do not affect the result and are not stored with the run.
struct LogOptions {
  std::string tensorboard;  ///< folder for an event file; empty: none
  bool json = false;        ///< log as lines of JSON
};

}  // namespace cudp
