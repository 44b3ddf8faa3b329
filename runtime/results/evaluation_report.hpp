#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "runtime/results/evaluation.hpp"

namespace cudp {

/// The text of a class: its name, or its number where there are no names.
std::string class_name(const std::vector<std::string>& names, int number);

/// An evaluation for machines: metrics() by key, then classes, the confusion matrix and the
/// reliability bins; of a target metrics alone. What is not defined is null. names: of the classes;
/// empty: numbers.
nlohmann::ordered_json to_json(const Evaluation& evaluation, const std::vector<std::string>& names);

/// An evaluation for people, as rows of a table: name and value. Matrix and classes are left out
/// where there are more than 20 classes.
std::vector<std::pair<std::string, std::string>> table_of(const Evaluation& evaluation,
                                                          const std::vector<std::string>& names);

/// What a threshold gives, for machines: the threshold, the four counts, sensitivity, specificity,
/// ppv and npv.
nlohmann::ordered_json to_json(const AtThreshold& at);

/// "sensitivity 81.20 %, specificity 70.11 %, PPV 9.10 %, NPV 99.01 %, 3052 positive".
std::string text_of(const AtThreshold& at);

/// The thresholds of an evaluation for people, as rows of a table; none unless there are any.
std::vector<std::pair<std::string, std::string>> threshold_table(
    const Evaluation& evaluation, const std::vector<std::string>& names);

/// The number of a threshold as it is typed.
std::string threshold_text(double threshold);

/// "no better than always saying NO", where that is so: the accuracy is at most that of always
/// predicting the most frequent class of these examples.
std::optional<std::string> no_better_than_majority(double accuracy, double majority_baseline,
                                                   const std::string& majority_class);

/// "no better than always saying the mean", unless R2 is above 0.
std::optional<std::string> no_better_than_mean(double r2);

/// The names of the pictures that draw_evaluation makes.
inline constexpr const char* kEvaluationPictures[] = {"roc.png", "precision_recall.png",
                                                      "reliability.png", "confusion.png"};

/// Draws the ROC curves, precision against recall, how reliable probabilities are, and the
/// confusion matrix into `folder`, PNGs by gnuplot, none of a target, whatever the numbers are.
/// mode: their permissions. Returns false where gnuplot is missing or fails.
bool draw_evaluation(const Evaluation& evaluation, const std::vector<std::string>& names,
                     const std::string& title, const std::filesystem::path& folder, unsigned mode);

}  // namespace cudp
