#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "privacy/accountant.hpp"
#include "runtime/base/busy.hpp"

namespace cudp {

/// Epsilon of a group, and what follows from the single example's alone.
struct GroupRow {
  std::uint64_t group = 1;
  privacy::PrivacyBound bound;
  std::optional<double> vadhan;  ///< Vadhan's lemma; nothing where it has no finite answer
  double linear = 0.0;           ///< group x epsilon of one: what a pure promise would give
};
/// busy: hears how far it is.
std::vector<GroupRow> group_rows(const privacy::Composition& composition, std::uint64_t largest,
                                 double delta, const privacy::AccountantOptions& options,
                                 Busy& busy);

/// Draws, as a PNG, epsilon over group size (Ganesh 2024, figures 1 and 2). Throws Error where
/// gnuplot does not draw it.
void draw_group_curve(const std::vector<GroupRow>& rows, double delta,
                      const std::filesystem::path& picture);
/// The same of delta over epsilon by each accountant.
void draw_privacy_curve(const privacy::Composition& composition, double delta,
                        const std::filesystem::path& picture,
                        const privacy::AccountantOptions& options);

}  // namespace cudp
