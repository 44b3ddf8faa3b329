#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace cudp {

/// A point of a run: from the released model so far, the test set and the ledger. No clock: the
/// time of a step tells how many private examples were in it.
struct MetricsRow {
  double epoch = 0.0;
  std::uint64_t step = 0;
  double epsilon = 0.0;
  double learning_rate = 0.0;
  std::optional<double> test_accuracy = {};  ///< empty where there is no test set
  std::optional<double> test_loss = {};
};

/// The rows without what was measured on the test set.
std::vector<MetricsRow> without_test(std::vector<MetricsRow> rows);

/// One line of JSON a row.
std::string encode_metrics(const std::vector<MetricsRow>& rows);
/// Throws Error on anything that encode_metrics did not write.
std::vector<MetricsRow> decode_metrics(const std::string& text);

/// Draws test accuracy, where it was measured, and epsilon over epochs as a PNG, by gnuplot.
/// Returns false, having drawn nothing, where gnuplot is missing or fails.
bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture, unsigned mode = 0644);

}  // namespace cudp
