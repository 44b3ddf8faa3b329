#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/random/random.hpp"
#include "models/model.hpp"
#include "runtime/data/dataset.hpp"

namespace cudp {

/// Which of an audit's canaries are in the training set, by a fair coin each, [canaries].
std::vector<bool> toss_coins(std::size_t canaries, const RandomKey& key);

/// Parameters for gradient canaries, ascending, each once, spread over all layers. canaries: at
/// most the parameters of the network.
std::vector<std::uint32_t> canary_parameters(std::size_t canaries, const Network& network);

/// The parameters of those that are members.
std::vector<std::uint32_t> members_of(const std::vector<std::uint32_t>& parameters,
                                      const std::vector<bool>& member);

/// Puts `count` examples of nothing behind the others.
void append_blanks(Dataset& data, std::size_t count);

/// Example canaries: random examples of the training set with a wrong label each.
struct ExampleCanaries {
  Dataset all;    ///< [canaries]
  Dataset train;  ///< the training set without them, and behind it those that are members
};
ExampleCanaries mislabel(const Dataset& train, const std::vector<bool>& member,
                         const RandomKey& key);

}  // namespace cudp
