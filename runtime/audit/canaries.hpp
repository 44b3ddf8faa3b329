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

/// Returns, for each canary, a random decision whether it is a member, i.e. in the training set,
/// with probability 1/2, [canaries].
std::vector<bool> draw_membership(std::size_t canaries, const RandomKey& key);

/// Returns the parameter that each gradient canary changes: indices, ascending and distinct, spread
/// over all layers. Requires canaries <= the network's number of parameters.
std::vector<std::uint32_t> canary_parameters(std::size_t canaries, const Network& network);

/// Returns the parameters of the canaries that are members, each repeated `rows` times, because a
/// canary is a whole unit of privacy of that many equal rows.
std::vector<std::uint32_t> members_of(const std::vector<std::uint32_t>& parameters,
                                      const std::vector<bool>& member, std::uint64_t rows);

/// Example canaries: random examples of the training set with a wrong label each.
struct ExampleCanaries {
  Dataset all;    ///< [canaries]
  Dataset train;  ///< training set without the canaries, followed by the member canaries
};
/// Makes example canaries from random training examples. member: whether each canary stays in the
/// training set. rows: number of copies of each member, which together are one unit of privacy.
ExampleCanaries mislabelled_canaries(const Dataset& train, const std::vector<bool>& member,
                                     std::uint64_t rows, const RandomKey& key);

/// The canaries of one training, and the attacker's scores for them.
struct Canaries {
  std::vector<bool> member;                    ///< whether each canary is in the training set
  std::vector<std::uint32_t> parameters = {};  ///< parameter that each gradient canary changes
  std::optional<GradientScores> scores =
      {};  ///< scores from the released sums; gradient canaries only

  /// Returns the number of canaries that are in the training set.
  std::size_t members() const;
};

/// Makes the experiment's engines add gradient canaries to their gradient sums. The engines pass
/// each released sum to `canaries.scores`, which must be set before the first step and must outlive
/// the engines. Blank examples are appended for the members, so that they are counted and sampled.
/// Requires at most one canary per parameter.
void add_gradient_canaries(Experiment& experiment, Canaries& canaries);

/// Adds the members of example canaries to the training set, and replaces the test set by all
/// canaries, so that features are computed for them as for test examples. Requires canaries <= half
/// of the examples.
void add_example_canaries(Experiment& experiment, const Canaries& canaries, const RandomKey& key);

}  // namespace cudp
