#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cudp::privacy {

/// Which bound is asked for. The Gaussian-DP estimate is not one: rdp/gaussian.hpp.
enum class AccountantKind : std::uint8_t {
  pld,       ///< privacy loss distributions
  rdp,       ///< Renyi divergences
  best,      ///< the least of all that apply: those two, and the exact Gaussian
  advanced,  ///< advanced composition (rdp/advanced.hpp): to reproduce papers
};
std::string_view name(AccountantKind kind);

/// An (epsilon, delta) statement that holds, and how far it may be above the truth.
struct PrivacyBound {
  double epsilon = 0.0;
  double delta = 0.0;
  /// Below the truth: epsilon_lower for the given delta, or delta_lower for the given epsilon. 0
  /// where the accountant has no lower bound.
  double epsilon_lower = 0.0;
  double delta_lower = 0.0;
  /// The bound of each direction, where both were looked at; the larger one is the bound.
  std::optional<double> epsilon_add = {}, epsilon_remove = {}, delta_add = {}, delta_remove = {};
  double interval = 0.0;  ///< of the grid that was used, the coarser direction; 0 without one
  AccountantKind accountant = AccountantKind::best;  ///< whose bound it is
  double order = 0.0;  ///< of a Renyi bound; 0 where nothing was released, or of another bound
  std::uint64_t group = 1;
};

/// The name of the bound: "pld", "rdp", "advanced", or "gaussian" for the exact one.
std::string_view bound_name(const PrivacyBound& bound);

}  // namespace cudp::privacy
