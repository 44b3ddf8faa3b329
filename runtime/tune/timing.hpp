#pragma once
#include <cstddef>
#include <optional>

#include "runtime/config/config.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Returns `examples` random examples with the public shape, classes and kind of features of
/// `like`. Texts have the maximum length. Reads no example of `like`.
Dataset random_examples(const Dataset& like, std::size_t examples);

/// Measures how long a step of a training takes on random examples [seconds], for about `seconds`.
/// No private example is read: a time that depended on them would reveal something. config: a
/// training whose budget is known. like: its data, of which only public properties are used.
/// examples: public, released or assumed number of training examples. Returns nullopt if the
/// training cannot be measured in this way.
std::optional<double> seconds_of_a_step(TrainConfig config, const DataSplit& like, double examples,
                                        double seconds);

}  // namespace cudp
