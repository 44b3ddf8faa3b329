#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/base/gnuplot.hpp"
#include "runtime/results/evaluation.hpp"

namespace cudp {

/// Returns the name of a class, or its number if there are no names.
std::string class_name(const std::vector<std::string>& names, int number);

/// Returns an evaluation as JSON: metrics() by key, then classes, confusion matrix, reliability
/// bins and thresholds; for a target only metrics. Undefined numbers are null. names: names of the
/// classes; empty to use numbers.
nlohmann::ordered_json to_json(const Evaluation& evaluation, const std::vector<std::string>& names);

/// Returns an evaluation for people, as rows of a table: name and value. Leaves out classes and
/// confusion matrix if there are more than 20 classes.
std::vector<std::pair<std::string, std::string>> table_of(const Evaluation& evaluation,
                                                          const std::vector<std::string>& names);

/// Returns the counts at a threshold as JSON: the threshold, the four counts, sensitivity,
/// specificity, ppv and npv.
nlohmann::ordered_json to_json(const ThresholdCounts& at);

/// Returns the figures at a threshold as text, such as "sensitivity 81.20 %, specificity 70.11 %,
/// PPV 9.10 %, NPV 99.01 %, 3052 positive".
std::string text_of(const ThresholdCounts& at);

/// Returns the thresholds of an evaluation for people, as rows of a table. Empty if the evaluation
/// has no thresholds.
std::vector<std::pair<std::string, std::string>> threshold_table(
    const Evaluation& evaluation, const std::vector<std::string>& names);

/// Returns a threshold as text, in the form in which a user types it.
std::string threshold_text(double threshold);

/// Returns the warning "no better than always saying NO", with the majority class for NO, if the
/// accuracy is at most that of always predicting it; empty otherwise.
std::optional<std::string> no_better_than_majority(double accuracy, double majority_baseline,
                                                   const std::string& majority_class);

/// Returns the warning "no better than always saying the mean" unless R2 > 0; empty if it is.
std::optional<std::string> no_better_than_mean(double r2);

/// File names of the pictures of an evaluation.
inline constexpr const char* kEvaluationPictures[] = {"roc.png", "precision_recall.png",
                                                      "reliability.png", "confusion.png"};

/// Starts to draw ROC curves, precision-recall curves, reliability and the confusion matrix into
/// `folder`, as PNGs with permissions `mode`. Draws all of them even if numbers are undefined, but
/// none for a target.
void start_evaluation_pictures(const Evaluation& evaluation, const std::vector<std::string>& names,
                               const std::string& title, const std::filesystem::path& folder,
                               unsigned mode, Pictures& pictures);
/// Draws the same pictures, and waits for them. Returns false if gnuplot is missing or fails.
bool draw_evaluation(const Evaluation& evaluation, const std::vector<std::string>& names,
                     const std::string& title, const std::filesystem::path& folder, unsigned mode);

}  // namespace cudp
