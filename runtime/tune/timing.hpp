#pragma once
#include <cstddef>
#include <optional>

#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns `examples` random examples with the public shape, classes and kind of features of
/// `like`. Texts have the maximum length. Does not read the examples in `like`.
Dataset random_examples(const Dataset& like, std::size_t examples);

/// Measured durations of a training [seconds].
struct TrainingTime {
  /// Time from the start until the first step, without reading data: planning, and preparing the
  /// device.
  double start = 0.0;
  double step = 0.0;  ///< time of one step
};

/// Measures how long a training takes on random examples, by making steps for about `seconds`. Does
/// not use the private examples, because a duration that depends on them would reveal something
/// about them. config: settings of the training, with its budget. like: its data, of which only
/// public properties are used. examples: public, released or assumed number of training examples.
/// Returns nullopt if the training cannot be measured in this way.
std::optional<TrainingTime> measured_time(TrainConfig config, const DataSplit& like,
                                          double examples, double seconds);

}  // namespace cudp
