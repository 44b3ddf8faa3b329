#pragma once
#include <string>

namespace cudp {

/// Settings for watching a training. They do not affect the result and are not stored with the run.
struct LogOptions {
  std::string tensorboard;  ///< folder for a TensorBoard event file; empty: no such file
  bool json = false;        ///< write log lines as JSON
};

}  // namespace cudp
