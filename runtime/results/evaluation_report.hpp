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

/// "no better than always saying NO", where that is so: the accuracy is at most that of always
/// predicting the most frequent class of these examples.
std::optional<std::string> no_better_than_majority(double accuracy, double majority_baseline,
                                                   const std::string& majority_class);

/// "no better than always saying the mean", unless R2 is above 0.
std::optional<std::string> no_better_than_mean(double r2);

/// The names of the pictures that draw_evaluation makes.
inline constexpr const char* kEvaluationPictures[] = {"roc.png", "reliability.png",
                                                      "confusion.png"};

/// Draws the ROC curves, how reliable probabilities are, and the confusion matrix into `folder`,
/// three PNGs by gnuplot, none of a target, whatever the numbers are. mode: their permissions.
/// Returns false where gnuplot is missing or fails.
bool draw_evaluation(const Evaluation& evaluation, const std::vector<std::string>& names,
                     const std::string& title, const std::filesystem::path& folder, unsigned mode);

}  // namespace cudp
