#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace cudp {

/// What the oracle found of a run's sums before noise.
struct Recomputed {
  /// The first sum that is not the oracle's, or the first example that adds more than the
  /// certificate's sensitivity; empty where there is none.
  std::string fault{};
  std::uint64_t sums = 0;      ///< that were made again
  std::uint64_t examples = 0;  ///< whose gradients were
  std::uint64_t left_out = 0;  ///< sums whose numbers are so large that float and double part
  double longest = 0.0;        ///< contribution of one example, as a share of the sensitivity
  double error = 0.0;          ///< distance of a sum, as a share of what rounding may explain
};

/// Makes a seeded run's sums of clipped gradients again, in double, by the oracle that shares no
/// code with what ran (reference/network.hpp): of the examples that the transcript says were drawn,
/// at the parameters that it says were there, clipped as the run's settings say. Besides those sums
/// what follows from norms: the counts of dpsgd-quantile, the norms' sums, candidates and accepted
/// examples of dpis; the transformation of adaclip and its parameters; the gradients of dp-agd.
///
/// Every sum is held, but of a model with so many parameters that it would take long: a part of the
/// steps then, the first among them. The working folder must be the one that the run was trained
/// in. Rounding may explain 2e-5 of the gradient that an example has with another label than its
/// own (that is as large as its terms, which may cancel), times its clipping factor, and the grid.
///
/// run: its folder, with a certificate and settings; transcript: as privacy/transcript/records.hpp
/// has it. A run whose features rest on a release is left out as long as it has no model.
Recomputed recompute_sums(const std::filesystem::path& run, const std::string& transcript);

}  // namespace cudp
