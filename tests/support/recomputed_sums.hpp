#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

namespace cudp {

/// Result of the oracle's check of a run's sums before noise.
struct Recomputed {
  /// First sum that differs from the oracle's, or first example that adds more than the
  /// certificate's sensitivity; empty if there is none.
  std::string fault{};
  std::uint64_t sums = 0;      ///< number of sums that were recomputed
  std::uint64_t examples = 0;  ///< number of examples whose gradients were recomputed
  /// Number of sums left out because their numbers are so large that float and double differ.
  std::uint64_t left_out = 0;
  double longest = 0.0;  ///< contribution of one example, as a share of the sensitivity
  /// Largest error of a sum, as a share of the error that rounding may explain.
  double error = 0.0;
};

/// Recomputes the sums of clipped gradients of a seeded run, in double, with an oracle that shares
/// no code with the program (reference/network.hpp). It uses the examples and the parameters in the
/// transcript, and the clipping in the run's settings. It also recomputes what follows from norms:
/// the counts of dpsgd-quantile; the sums of norms, candidates and accepted examples of dpis; the
/// transform of adaclip and its parameters; the gradients of dp-agd.
///
/// Every sum is checked, except for models with so many parameters that it would take long: then a
/// part of the steps, including the first. The working folder must be the one that the run was
/// trained in. Rounding may explain an error of 2e-5 of the gradient that an example has with
/// another label than its own (that is as large as its terms, which may cancel), times its clipping
/// factor, plus the grid.
///
/// run: a folder with a certificate and settings. transcript: in the format of
/// privacy/transcript/records.hpp. A run whose features need a release is left out if it has no
/// model.
Recomputed recompute_sums(const std::filesystem::path& run, const std::string& transcript);

}  // namespace cudp
