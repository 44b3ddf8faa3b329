#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/results/metrics.hpp"

namespace cudp {

/// Draws test accuracy, or the RMSE of a target, where it was measured, and epsilon over epochs as
/// a PNG, by gnuplot. Returns false, having drawn nothing, where gnuplot is missing or fails.
bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture, unsigned mode = 0644);

}  // namespace cudp
