#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cudp::privacy {

/// Kind of accountant: the theory by which a bound on (epsilon, delta) is computed. The estimate by
/// Gaussian DP (rdp/gaussian.hpp) is not among them, because it is not a bound.
enum class AccountantKind : std::uint8_t {
  pld,  ///< privacy loss distributions
  rdp,  ///< Renyi divergences
  /// The smallest bound that applies: pld, rdp, or the exact one for Gaussians without sampling.
  best,
  advanced,  ///< advanced composition (rdp/advanced.hpp), to reproduce papers
};
std::string_view name(AccountantKind kind);

/// An upper bound on the privacy of a composition, epsilon at a delta, and lower bounds that show
/// how far it may be above the truth.
struct PrivacyBound {
  double epsilon = 0.0;
  double delta = 0.0;
  /// Lower bounds: epsilon_lower for the given delta, or delta_lower for the given epsilon. 0 if
  /// the accountant has no lower bound.
  double epsilon_lower = 0.0;
  double delta_lower = 0.0;
  /// Bounds for adding and for removing an example, if both were computed; the larger one is the
  /// bound in `epsilon` or `delta`.
  std::optional<double> epsilon_add = {}, epsilon_remove = {}, delta_add = {}, delta_remove = {};
  double interval = 0.0;  ///< losses are rounded to multiples of this [nats]; 0: not rounded
  AccountantKind accountant = AccountantKind::best;  ///< accountant that gave the bound
  double order = 0.0;  ///< order of a Renyi bound; 0 for other bounds, or if nothing was released
  std::uint64_t group = 1;
};

/// Returns the name of the kind of accountant that gave the bound: "pld", "rdp", "advanced", or
/// "gaussian" for the exact bound of Gaussian noise without sampling.
std::string_view bound_name(const PrivacyBound& bound);

}  // namespace cudp::privacy
