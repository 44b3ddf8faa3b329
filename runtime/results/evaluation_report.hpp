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
/// bins and thresholds. A regression model has only the metrics. Undefined values are null. names:
/// names of the classes; empty: their indices are used.
nlohmann::ordered_json to_json(const Evaluation& evaluation, const std::vector<std::string>& names);

/// Returns an evaluation as rows of a table for the user: name and value. With more than 20
/// classes, classes and confusion matrix are left out.
std::vector<std::pair<std::string, std::string>> table_of(const Evaluation& evaluation,
                                                          const std::vector<std::string>& names);

/// Returns the confusion counts at a threshold as JSON, with sensitivity, specificity, ppv and npv.
nlohmann::ordered_json to_json(const ThresholdCounts& at);

/// Returns the confusion counts at a threshold as text, such as "sensitivity 81.20 %, specificity
/// 70.11 %, PPV 9.10 %, NPV 99.01 %, 3052 positive".
std::string text_of(const ThresholdCounts& at);

/// Returns the evaluation at each of kThresholds as rows of a table for the user. Empty if the
/// evaluation has no thresholds.
std::vector<std::pair<std::string, std::string>> threshold_table(
    const Evaluation& evaluation, const std::vector<std::string>& names);

/// Returns a threshold as text, in the form in which a user types it.
std::string threshold_text(double threshold);

/// Returns the warning "no better than always saying NO", with the majority class for NO, if
/// accuracy <= majority_baseline; otherwise nullopt.
std::optional<std::string> no_better_than_majority(double accuracy, double majority_baseline,
                                                   const std::string& majority_class);

/// Returns the warning "no better than always saying the mean" unless R^2 > 0; otherwise nullopt.
std::optional<std::string> no_better_than_mean(double r2);

/// File names of the pictures that show an evaluation.
inline constexpr const char* kEvaluationPictures[] = {"roc.png", "precision_recall.png",
                                                      "reliability.png", "confusion.png"};

/// Starts to draw four PNGs into `folder`, with file permissions `mode`: ROC curves,
/// precision-recall curves, reliability diagram and confusion matrix. Draws all of them even if
/// values are undefined, but none for a regression model.
void start_evaluation_pictures(const Evaluation& evaluation, const std::vector<std::string>& names,
                               const std::string& title, const std::filesystem::path& folder,
                               unsigned mode, Pictures& pictures);
/// Draws the four PNGs of start_evaluation_pictures and waits for them. Returns false if gnuplot is
/// missing or fails.
bool draw_evaluation(const Evaluation& evaluation, const std::vector<std::string>& names,
                     const std::string& title, const std::filesystem::path& folder, unsigned mode);

}  // namespace cudp
