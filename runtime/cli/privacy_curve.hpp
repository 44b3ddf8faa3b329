#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "privacy/accountant.hpp"

namespace cudp {

/// Epsilon of a group, and what follows from the single example's alone.
struct GroupRow {
  std::uint64_t group = 1;
  privacy::PrivacyBound bound;
  std::optional<double> vadhan;  ///< Vadhan's lemma; nothing where it has no finite answer
  double linear = 0.0;           ///< group x epsilon of one: what a pure promise would give
};
std::vector<GroupRow> group_rows(const privacy::Composition& composition, std::uint64_t largest,
                                 double delta, const privacy::AccountantOptions& options);

/// Draws, as a PNG, epsilon over group size where largest > 1 (Ganesh 2024, figures 1 and 2), or
/// else delta over epsilon by each accountant. Throws Error where gnuplot does not draw it.
void draw_privacy_curve(const privacy::Composition& composition, double delta,
                        std::uint64_t largest, const std::filesystem::path& picture,
                        const privacy::AccountantOptions& options);

}  // namespace cudp
