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

/// Draws for each canary whether it is a member, i.e. included in the training, with probability
/// 1/2. Returns a vector of size `canaries`. key: random key of the draws.
std::vector<bool> draw_membership(std::size_t canaries, const RandomKey& key);

/// Returns the indices of the parameters that the gradient canaries change, one parameter per
/// canary. They are ascending, distinct, and spread over all layers. Requires canaries <= the
/// network's number of parameters.
std::vector<std::uint32_t> canary_parameters(std::size_t canaries, const Network& network);

/// Returns the parameters of those canaries that are members (included in the training). Each is
/// repeated `rows` times, because a canary is a whole unit of privacy of that many equal rows.
std::vector<std::uint32_t> members_of(const std::vector<std::uint32_t>& parameters,
                                      const std::vector<bool>& member, std::uint64_t rows);

/// Example canaries: random examples of the training set with a wrong label each.
struct ExampleCanaries {
  Dataset all;  ///< all canaries, members and non-members, [canaries]
  /// Training set without the canaries, followed by those canaries that are members.
  Dataset train;
};
/// Makes canaries from random training examples, each with a wrong label. member: whether each
/// canary is included in the training. rows: number of copies of each member, which together are
/// one unit of privacy. key: random key of the choice.
ExampleCanaries mislabelled_canaries(const Dataset& train, const std::vector<bool>& member,
                                     std::uint64_t rows, const RandomKey& key);

/// The canaries of one training (examples or gradients whose presence an attacker guesses), and the
/// attacker's scores for them.
struct Canaries {
  std::vector<bool> member;                    ///< whether each canary is included in the training
  std::vector<std::uint32_t> parameters = {};  ///< parameter that each gradient canary changes
  /// Scores computed from the released sums; null for example canaries.
  std::optional<GradientScores> scores = {};

  /// Returns the number of canaries that are members, i.e. included in the training.
  std::size_t members() const;
};

/// Sets up the experiment's engines so that they add the gradients of member canaries to their
/// gradient sums, and pass each released sum to `canaries.scores`. The caller must set
/// `canaries.scores` before the first step. `canaries` must outlive the engines. Appends blank
/// examples to the training set, one per row of each member, so that members are counted and
/// sampled. Requires at most one canary per parameter.
void add_gradient_canaries(Experiment& experiment, Canaries& canaries);

/// Adds those example canaries that are members to the experiment's training set, and replaces its
/// test set by all canaries, so that features are computed for them as for test examples. Requires
/// canaries <= half of the examples. key: random key of the choice of examples.
void add_example_canaries(Experiment& experiment, const Canaries& canaries, const RandomKey& key);

}  // namespace cudp
