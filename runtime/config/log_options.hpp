#pragma once
#include <string>

namespace cudp {

/// How a training is watched. None of it decides the result, and none of it is kept with the run.
struct LogOptions {
  std::string tensorboard;  ///< folder for an event file; empty: none
  bool json = false;        ///< log as lines of JSON
};

}  // namespace cudp
