#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "privacy/accountant.hpp"
#include "runtime/base/busy.hpp"

namespace cudp {

/// Epsilon of group privacy for a group of a certain size, and two simpler bounds on it that follow
/// from the epsilon of a single example alone.
struct GroupRow {
  std::uint64_t group = 1;
  privacy::PrivacyBound bound;
  std::optional<double> vadhan;  ///< bound by Vadhan's lemma; nullopt if it is infinite
  double linear = 0.0;           ///< group size x epsilon of one example, the bound for pure DP
};
/// Returns the epsilon of group privacy, and simpler bounds on it, for each group size from 1 to
/// `largest` examples. busy: receives the progress.
std::vector<GroupRow> group_rows(const privacy::Composition& composition, std::uint64_t largest,
                                 double delta, const privacy::AccountantOptions& options,
                                 Busy& busy);

/// Draws epsilon over group size, as in Ganesh 2024, figures 1 and 2, and writes it to the PNG file
/// `picture`. Throws Error if the program gnuplot is missing or fails.
void draw_group_curve(const std::vector<GroupRow>& rows, double delta,
                      const std::filesystem::path& picture);
/// Draws delta over epsilon, one curve for each accountant, and writes it to the PNG file
/// `picture`. Throws Error if the program gnuplot is missing or fails.
void draw_privacy_curve(const privacy::Composition& composition, double delta,
                        const std::filesystem::path& picture,
                        const privacy::AccountantOptions& options);

}  // namespace cudp
