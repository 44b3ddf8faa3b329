#pragma once
#include <cstddef>
#include <optional>

#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns `examples` random examples with the public shape, classes and kind of features of
/// `like`. Texts have the maximum length. Reads no example of `like`.
Dataset random_examples(const Dataset& like, std::size_t examples);

/// Measured durations of a training [seconds].
struct TrainingTime {
  /// Time until the first step: planning and making the engine, without reading data.
  double start = 0.0;
  double step = 0.0;  ///< time of one step
};

/// Measures the duration of a training on random examples, by making steps for about `seconds`.
/// Reads no private example, because a time that depended on them would reveal something. config:
/// settings of the training, with its budget. like: its data, of which only public properties are
/// used. examples: public, released or assumed number of training examples. Returns nullopt if the
/// training cannot be measured in this way.
std::optional<TrainingTime> measured_time(TrainConfig config, const DataSplit& like,
                                          double examples, double seconds);

}  // namespace cudp
