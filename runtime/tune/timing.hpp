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
  double start = 0.0;  ///< until the first step: plan and engine, without reading data
  double step = 0.0;   ///< of one step
};

/// Measures a training on random examples, with steps for about `seconds`. No private example is
/// read: a time that depended on them would reveal something. config: a training whose budget is
/// known. like: its data, of which only public properties are used. examples: public, released or
/// assumed number of training examples. Returns nullopt if the training cannot be measured in this
/// way.
std::optional<TrainingTime> measured_time(TrainConfig config, const DataSplit& like,
                                          double examples, double seconds);

}  // namespace cudp
