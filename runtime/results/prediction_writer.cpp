#include "runtime/results/prediction_writer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/results/evaluation_report.hpp"

namespace cudp {
namespace {

/// Number of rows whose lines one thread writes at a time.
constexpr std::size_t kRowsOfPart = 1024;

bool needs_quotes(std::string_view text) {
  if (text.empty()) return false;
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  return text.find_first_of(",\"\r\n") != std::string_view::npos || blank(text.front()) ||
         blank(text.back());
}

void append_cell(std::string_view text, std::string& to) {
  if (!needs_quotes(text)) {
    to += text;
    return;
  }
  to += '"';
  for (const char c : text) {
    if (c == '"') to += '"';
    to += c;
  }
  to += '"';
}

}  // namespace

std::string csv_cell(std::string_view text) {
  std::string cell;
  append_cell(text, cell);
  return cell;
}

PredictionWriter::PredictionWriter(PredictionFormat format, int threads)
    : format_(std::move(format)), team_(threads) {
  if (format_.threshold) check_threshold("--threshold", format_.loss, format_.outputs);
  if (has_target(format_.loss)) return;
  const int classes = format_.outputs == 1 ? 2 : format_.outputs;
  for (int c = 0; c < classes; ++c) cells_.push_back(csv_cell(class_name(format_.classes, c)));
}

std::string PredictionWriter::header() const {
  std::string line = format_.ids ? "id,prediction" : "row,prediction";
  if (has_target(format_.loss)) return line + "\n";
  if (!gives_probabilities(format_.loss)) return line + ",margin\n";
  for (int c = 0; c < static_cast<int>(cells_.size()); ++c)
    line += "," + csv_cell("p_" + class_name(format_.classes, c));
  return line + "\n";
}

std::string PredictionWriter::lines(const ScoredBlock& block, const std::string& data_name) {
  const Predictions& p = block.predictions;
  const auto bad =
      std::ranges::find_if(p.logits, [](float z) { return !std::isfinite(z); }) - p.logits.begin();
  if (bad < static_cast<std::ptrdiff_t>(p.logits.size()))
    throw InputError(
        fmt::format("{}, row {}: the model's output is not finite, because its training diverged",
                    data_name, block.first_row + 1 + static_cast<std::uint64_t>(bad / p.outputs)));
  const std::size_t rows = p.logits.size() / static_cast<std::size_t>(p.outputs);
  const std::size_t parts = (rows + kRowsOfPart - 1) / kRowsOfPart;
  parts_.resize(std::max(parts_.size(), parts));
  team_.run(parts, [&](std::size_t i, int) {
    parts_[i].clear();
    append_lines(block, i * kRowsOfPart, std::min(rows, (i + 1) * kRowsOfPart), parts_[i]);
  });
  std::string all;
  for (std::size_t i = 0; i < parts; ++i) all += parts_[i];
  return all;
}

void PredictionWriter::append_lines(const ScoredBlock& block, std::size_t begin, std::size_t end,
                                    std::string& to) const {
  const Predictions& p = block.predictions;
  const auto outputs = static_cast<std::size_t>(p.outputs);
  const bool probable = gives_probabilities(p.loss);
  std::vector<float> probabilities(cells_.size());
  for (std::size_t row = begin; row < end; ++row) {
    const std::span<const float> logits(p.logits.data() + row * outputs, outputs);
    if (format_.ids)
      append_cell(block.ids[row], to);
    else
      append_number(block.first_row + row + 1, to);
    to += ',';
    if (has_target(p.loss)) {
      append_number(format_.target.value(static_cast<double>(logits[0])), to);
      to += '\n';
      continue;
    }
    to += cells_[static_cast<std::size_t>(predicted_class(p.loss, logits, format_.threshold))];
    if (probable) class_probabilities(p.loss, logits, probabilities);
    if (!probable) {
      to += ',';
      append_number(logits[0], to);
    } else {
      for (const float probability : probabilities) {
        to += ',';
        append_number(probability, to);
      }
    }
    to += '\n';
  }
}

}  // namespace cudp
