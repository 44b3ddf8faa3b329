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

/// Returns the name of the class with the index `number`, or the index as text if `names` is empty.
std::string class_name(const std::vector<std::string>& names, int number);

/// Returns an evaluation as JSON: the value of each metric under its key, then metrics of each
/// class, confusion matrix, reliability bins and thresholds. For a regression model there are only
/// the metrics. Undefined values are null. names: names of the classes; if empty, their indices are
/// used.
nlohmann::ordered_json to_json(const Evaluation& evaluation, const std::vector<std::string>& names);

/// Returns an evaluation as rows of a table for the user: name and value. names: names of the
/// classes. If there are more than 20 classes, the metrics of each class and the confusion matrix
/// are left out.
std::vector<std::pair<std::string, std::string>> table_of(const Evaluation& evaluation,
                                                          const std::vector<std::string>& names);

/// Returns the confusion counts at a threshold as JSON, with sensitivity, specificity, ppv and npv.
nlohmann::ordered_json to_json(const ThresholdCounts& at);

/// Returns the confusion counts at a threshold as text, such as "sensitivity 81.20 %, specificity
/// 70.11 %, PPV 9.10 %, NPV 99.01 %, 3052 positive".
std::string text_of(const ThresholdCounts& at);

/// Returns the confusion counts at each threshold in Evaluation::thresholds as rows of a table for
/// the user. Empty if the evaluation has no thresholds.
std::vector<std::pair<std::string, std::string>> threshold_table(
    const Evaluation& evaluation, const std::vector<std::string>& names);

/// Returns a threshold on a probability as text, in the form in which a user types it.
std::string threshold_text(double threshold);

/// Returns the warning "no better than always saying NO", with the name of the most frequent class
/// in place of NO, if accuracy <= majority_baseline, the accuracy of always predicting that class;
/// otherwise nullopt.
std::optional<std::string> no_better_than_majority(double accuracy, double majority_baseline,
                                                   const std::string& majority_class);

/// Returns the warning "no better than always saying the mean" for a regression model unless R^2 >
/// 0; otherwise nullopt. r2: 1 - mean squared error / variance of the targets.
std::optional<std::string> no_better_than_mean(double r2);

/// File names of the pictures that show an evaluation.
inline constexpr const char* kEvaluationPictures[] = {"roc.png", "precision_recall.png",
                                                      "reliability.png", "confusion.png"};

/// Starts to draw four PNG files into `folder`, with file permissions `mode`: ROC curves,
/// precision-recall curves, reliability diagram and confusion matrix. The program continues while
/// they are drawn; pictures.finish() waits for them. For a regression model none is drawn;
/// otherwise always all four, even if values are undefined.
void start_evaluation_pictures(const Evaluation& evaluation, const std::vector<std::string>& names,
                               const std::string& title, const std::filesystem::path& folder,
                               unsigned mode, Pictures& pictures);
/// Draws the PNG files of ROC curves, precision-recall curves, reliability diagram and confusion
/// matrix into `folder`, with file permissions `mode`, and waits until they are drawn. Returns
/// false if the program gnuplot is missing or fails.
bool draw_evaluation(const Evaluation& evaluation, const std::vector<std::string>& names,
                     const std::string& title, const std::filesystem::path& folder, unsigned mode);

}  // namespace cudp
