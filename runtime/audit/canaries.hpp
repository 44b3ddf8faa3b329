#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/random/random.hpp"
#include "models/model.hpp"
#include "runtime/audit/scores.hpp"
#include "runtime/data/dataset.hpp"
#include "runtime/training/prepare.hpp"

namespace cudp {

/// Which of an audit's canaries are in the training set, by a fair coin each, [canaries].
std::vector<bool> toss_coins(std::size_t canaries, const RandomKey& key);

/// Parameters for gradient canaries, ascending, each once, spread over all layers. canaries: at
/// most the parameters of the network.
std::vector<std::uint32_t> canary_parameters(std::size_t canaries, const Network& network);

/// The parameters of those that are members, `rows` times each: a canary is a whole unit of
/// privacy, of so many equal rows.
std::vector<std::uint32_t> members_of(const std::vector<std::uint32_t>& parameters,
                                      const std::vector<bool>& member, std::uint64_t rows);

/// Example canaries: random examples of the training set with a wrong label each.
struct ExampleCanaries {
  Dataset all;    ///< [canaries]
  Dataset train;  ///< the training set without them, and behind it those that are members
};
/// rows: how often a member is there, as a unit of equal rows.
ExampleCanaries mislabel(const Dataset& train, const std::vector<bool>& member, std::uint64_t rows,
                         const RandomKey& key);

/// Canaries of one training, and what an attacker has of it.
struct Canaries {
  std::vector<bool> member;                    ///< which of them are in the training set
  std::vector<std::uint32_t> parameters = {};  ///< of gradient canaries
  std::optional<GradientScores> scores = {};  ///< of gradient canaries, by the sums released so far

  std::size_t members() const;
};

/// Puts gradient canaries into the sums of the experiment's engines, which show `canaries.scores`
/// what they release: it must be there, and outlive them. Blanks stand for the members, so that
/// sums have room for them. There are no more than parameters.
void add_gradient_canaries(Experiment& experiment, Canaries& canaries);

/// Puts the members of example canaries into the training set, and all of them in place of the test
/// set: features are made of them as of test examples. There are no more than half of the examples.
void add_example_canaries(Experiment& experiment, const Canaries& canaries, const RandomKey& key);

}  // namespace cudp
