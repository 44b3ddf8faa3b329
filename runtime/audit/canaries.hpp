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

/// Decides by a fair coin for each canary whether it is in the training set. Returns [canaries].
std::vector<bool> toss_coins(std::size_t canaries, const RandomKey& key);

/// Returns the parameters of gradient canaries: indices, ascending and distinct, spread over all
/// layers. Requires canaries <= the network's number of parameters.
std::vector<std::uint32_t> canary_parameters(std::size_t canaries, const Network& network);

/// Returns the parameters of the canaries that are members, each repeated `rows` times: a canary is
/// a whole unit of privacy of that many equal rows.
std::vector<std::uint32_t> members_of(const std::vector<std::uint32_t>& parameters,
                                      const std::vector<bool>& member, std::uint64_t rows);

/// Example canaries: random examples of the training set with a wrong label each.
struct ExampleCanaries {
  Dataset all;    ///< [canaries]
  Dataset train;  ///< training set without the canaries, followed by the member canaries
};
/// Makes example canaries. rows: number of copies of each member, which form one unit.
ExampleCanaries mislabel(const Dataset& train, const std::vector<bool>& member, std::uint64_t rows,
                         const RandomKey& key);

/// Canaries of one training, with the attacker's scores.
struct Canaries {
  std::vector<bool> member;                    ///< whether each is in the training set
  std::vector<std::uint32_t> parameters = {};  ///< parameter of each gradient canary
  std::optional<GradientScores> scores =
      {};  ///< scores from the released sums; gradient canaries only

  /// Returns the number of canaries in the training set.
  std::size_t members() const;
};

/// Adds gradient canaries to the sums of the experiment's engines. The engines pass each released
/// sum to `canaries.scores`, which must be set before the first step and must outlive the engines.
/// Blank examples are appended for the members, so that they are counted and sampled. Requires at
/// most one canary per parameter.
void add_gradient_canaries(Experiment& experiment, Canaries& canaries);

/// Adds the members of example canaries to the training set, and replaces the test set by all
/// canaries, so that features are computed for them as for test examples. Requires canaries <= half
/// of the examples.
void add_example_canaries(Experiment& experiment, const Canaries& canaries, const RandomKey& key);

}  // namespace cudp
