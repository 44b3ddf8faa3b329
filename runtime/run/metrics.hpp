#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace cudp {

/// A public point of a run: from the released model so far, the public test set and the ledger.
/// No clock: the time of a step tells how many private examples were in it.
struct MetricsRow {
  double epoch = 0.0;
  std::uint64_t step = 0;
  double epsilon = 0.0;
  double learning_rate = 0.0;
  double test_accuracy = 0.0;
  double test_loss = 0.0;
};

/// One line of JSON a row.
std::string encode_metrics(const std::vector<MetricsRow>& rows);
/// Throws Error on anything that encode_metrics did not write.
std::vector<MetricsRow> decode_metrics(const std::string& text);

/// Draws test accuracy and epsilon over epochs as a PNG, by gnuplot. Returns false, having drawn
/// nothing, where gnuplot is missing or fails.
bool draw_curves(const std::vector<MetricsRow>& rows, const std::string& title,
                 const std::filesystem::path& picture);

}  // namespace cudp
