#include "runtime/verify/released_bytes.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string_view>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/results/metrics.hpp"
#include "runtime/run/folder.hpp"
#include "runtime/run/outputs.hpp"
#include "runtime/verify/picture_file.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

using FileJson = nlohmann::ordered_json;

/// Returns the JSON in a text in the form in which the program writes it, with the same order of
/// keys; "" if the text is not JSON. If a file differs from the result, it contains more than the
/// program writes, e.g. other spaces.
std::string written_json(const std::string& text) {
  const FileJson json = FileJson::parse(text, nullptr, false);
  if (json.is_discarded()) return "";
  return json.dump(2, ' ', false, FileJson::error_handler_t::replace) + "\n";
}

/// Returns whether a part of evaluation.json has only fields that the program writes. Its texts may
/// only be names of classes.
bool is_evaluation(const FileJson& json) {
  static constexpr std::string_view kKeys[] = {"test_examples",
                                               "no_better_than_mean",
                                               "majority_class",
                                               "no_better_than_majority",
                                               "classes",
                                               "class",
                                               "examples",
                                               "predicted",
                                               "precision",
                                               "recall",
                                               "f1",
                                               "confusion",
                                               "reliability",
                                               "reliability_by_count",
                                               "confidence",
                                               "share",
                                               "thresholds",
                                               "at_threshold",
                                               "threshold",
                                               "true_positives",
                                               "false_positives",
                                               "true_negatives",
                                               "false_negatives",
                                               "sensitivity",
                                               "specificity",
                                               "ppv",
                                               "npv"};
  if (json.is_array()) return std::ranges::all_of(json, is_evaluation);
  if (!json.is_object()) return !json.is_string();
  for (const auto& [key, value] : json.items()) {
    const auto is_key = [&](const Metric& metric) { return key == metric.key; };
    const bool is_known = std::ranges::find(kKeys, std::string_view(key)) != std::end(kKeys) ||
                          std::ranges::any_of(metrics(PredictionKind::classes), is_key) ||
                          std::ranges::any_of(metrics(PredictionKind::target), is_key);
    const bool is_name = value.is_string() && (key == "class" || key == "majority_class");
    if (!is_known || (!is_name && !is_evaluation(value))) return false;
  }
  return true;
}

/// Returns the text that the program would write for the content of a file in release/. name, text:
/// name and content of the file. For files that other checks compare, returns `text` itself.
std::string written(const std::string& name, const std::string& text, const ReleasedRun& run) {
  if (name == RunFolder::kEvaluation && !is_evaluation(FileJson::parse(text, nullptr, false)))
    return "";
  if (name.ends_with(".json")) return written_json(text);
  if (name == RunFolder::kMetrics) return encode_metrics(decode_metrics(text));
  if (name == RunFolder(run.release).not_for_release().filename()) {
    const auto json = nlohmann::json::parse(run.evidence.certificate);
    return note_of(json.value("not_for_release", std::vector<std::string>()));
  }
  return text;
}

}  // namespace

std::vector<std::string> more_than_written(const ReleasedRun& run) {
  std::vector<std::string> wrong;
  for (const std::string& name : run.files) {
    const fs::path path = run.release / name;
    if (fs::symlink_status(path).type() != fs::file_type::regular) {
      wrong.push_back(name + ": expected a file, found a link or a folder");
      continue;
    }
    try {
      const std::string text = read_file(path);
      if (name.ends_with(".png")) {
        if (const std::string why = verify::check_picture(text); !why.empty())
          wrong.push_back(fmt::format("{}: {}", name, why));
      } else if (written(name, text, run) != text) {
        wrong.push_back(name +
                        ": expected its content as the program writes it, found more, or "
                        "another spelling");
      }
    } catch (const Error& e) {
      wrong.push_back(name + ": " + e.what());
    }
  }
  return wrong;
}

}  // namespace cudp
