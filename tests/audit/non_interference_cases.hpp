#pragma once
// The trainings of non_interference_test.cpp: flags, kind of data, and how each ends.
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "tests/audit/neighbours.hpp"
#include "tests/support/arguments.hpp"

namespace cudp::neighbours {

enum class Kind { table, images, texts, matrix, units, image_array, target_array };
inline constexpr const char* kDataOf[] = {"people.csv", "images",     "notes.csv",  "people.npz",
                                          "visits.csv", "digits.npz", "targets.npz"};

struct Case {
  const char* name;
  Kind kind;
  std::vector<std::string> flags;
  int exit;                  ///< of the last process
  bool one_step = false;     ///< or none: nothing to interrupt
  bool size_public = false;  ///< only changes that keep the number of rows are to be hidden
  bool overflows = false;    ///< where a row holds kLargeWords
  bool malformed = false;    ///< takes what it cannot read for missing
};

/// Most of such a short training would be the accountant's work, which knows public numbers alone:
/// all but each fourth of the cases take the one that is quicker, where their method has a choice.
inline const std::vector<std::string> kQuick = {"--accountant", "rdp"};
inline const std::vector<std::string> kPictures = {"--model", "cnn",     "--batch",
                                                   "40",      "--steps", "6"};

inline bool has_accountant_of_its_own(const Case& c) {
  if (c.one_step) return true;  // linear methods that train in one go
  static const std::set<std::string> kNames = {"sgd_ma", "sgd_adv", "adp_theorem41", "allocation",
                                               "allocation_of_public_size"};
  return kNames.contains(c.name);
}

inline std::vector<Case> cases_as_listed() {
  const std::vector<std::string> linear = {"--model", "logistic", "--batch", "64", "--epochs", "2"};
  const auto row = [&](const char* name, const std::vector<std::string>& flags, int exit = 0) {
    return Case{name, Kind::table, with(linear, flags), exit};
  };
  const auto alone = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{name, Kind::table, with({"--model", "logistic"}, flags), 0, true};
  };
  const auto known = [&](const char* name, const std::vector<std::string>& flags) {
    Case c = row(name, flags);
    c.flags.push_back("--size-is-public");
    c.size_public = true;
    return c;
  };
  const auto missing = [&](const char* name, Kind kind, const std::vector<std::string>& flags) {
    Case c{.name = name, .kind = kind, .flags = with(linear, flags), .exit = 0, .malformed = true};
    c.flags.insert(c.flags.end(), {"--malformed", "missing"});
    if (kind == Kind::matrix) c.flags.insert(c.flags.end(), {"--classes", "2"});
    return c;
  };
  const auto units = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{name, Kind::units, with(linear, flags), 0};
  };
  const auto text = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{name, Kind::texts,
                with({"--model", "sentences-lstm", "--tokens", "12", "--vocabulary", "words.txt",
                      "--vocabulary-is-public", "--batch", "40", "--steps", "6"},
                     flags),
                0};
  };
  const auto overflow = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{.name = name,
                .kind = Kind::texts,
                .flags = with({"--embedding", "vectors.txt", "--tokens", "12", "--batch", "40",
                               "--steps", "6"},
                              flags),
                .exit = 0,
                .overflows = true};
  };
  const auto preset = [&](const char* name, const char* settings) {
    return Case{name, Kind::images, {"--preset", settings, "--batch", "40", "--steps", "6"}, 0};
  };
  const auto picture = [&](const char* name, const std::vector<std::string>& flags) {
    return Case{name, Kind::images, with(kPictures, flags), 0};
  };
  return {
      row("dpsgd", {}),
      row("mlp_per_layer", {"--model", "mlp", "--clipping", "per-layer"}),
      row("automatic", {"--clipping", "automatic", "--optimizer", "adam"}),
      row("ema", {"--ema", "0.9", "--schedule", "cosine"}),
      row("allocation", {"--sampling", "allocation"}),
      known("allocation_of_public_size", {"--sampling", "allocation"}),
      row("ts", {"--method", "dpsgd-ts", "--model", "mlp"}),
      row("decay", {"--method", "dpsgd-decay"}),
      row("quantile", {"--method", "dpsgd-quantile"}),
      row("quantile_normalised", {"--method", "dpsgd-quantile", "--quantile-normalise"}),
      row("adp", {"--method", "adp-sgd", "--schedule", "polynomial"}),
      row("adp_adaptive", {"--method", "adp-sgd", "--schedule", "adaptive"}),
      row("adaclip", {"--method", "adaclip"}),
      row("dpis", {"--method", "dpis", "--batch", "20"}),
      row("dpis_adaptive", {"--method", "dpis", "--batch", "20", "--dpis-adaptive-clip"}),
      row("norm_bound", {"--method", "norm-bound"}),
      row("sgd_ma", {"--method", "sgd-ma"}),
      row("weights", {"--class-weights", "1,20"}),
      row("weights_dpis", {"--class-weights", "1,20", "--method", "dpis", "--batch", "20"}),
      alone("weights_objpert", {"--class-weights", "0,3", "--method", "objpert"}),
      known("sgd_adv", {"--method", "sgd-adv", "--batch", "10"}),
      known("dpsgd_of_public_size", {}),
      known("dpis_of_public_size", {"--method", "dpis", "--batch", "20"}),
      known("adp_theorem41", {"--method", "adp-sgd", "--schedule", "polynomial", "--calibration",
                              "theorem41", "--batch", "10"}),
      alone("dp_agd", {"--method", "dp-agd", "--splits", "6"}),
      alone("dp_agd_laplace", {"--method", "dp-agd", "--splits", "6", "--noisy-min", "laplace"}),
      alone("dp_agd_mini_batch", {"--method", "dp-agd", "--splits", "6", "--mini-batch", "100"}),
      alone("outpert", {"--method", "outpert"}),
      alone("outpert_coarse", {"--method", "outpert", "--solver-tolerance", "1e-3"}),
      alone("objpert", {"--method", "objpert"}),
      alone("privgene", {"--method", "privgene", "--generations", "8", "--candidates", "20"}),
      row("pca", {"--features", "pca", "--feature-dimensions", "2"}),
      row("pca_dpis",
          {"--features", "pca", "--feature-dimensions", "2", "--method", "dpis", "--batch", "20"}),
      row("size_is_noisy_and_dpis_cannot_be_paid",
          {"--method", "dpis", "--batch", "299", "--epsilon", "0.6"}, 3),
      row("batch_above_the_examples", {"--batch", "5000"}, 2),
      row("private_test_rows", {"--test-data", "test.csv"}),
      row("public_test_rows", {"--test-data", "test.csv", "--test-data-is-public"}),
      row("normalised", {"--normalise", "unit"}),
      missing("malformed_rows", Kind::table, {}),
      missing("malformed_rows_normalised", Kind::table, {"--normalise", "layer", "--model", "mlp"}),
      missing("matrix", Kind::matrix, {}),
      missing("matrix_unit", Kind::matrix, {"--normalise", "unit"}),
      missing("matrix_layer_pca", Kind::matrix,
              {"--normalise", "layer", "--features", "pca", "--feature-dimensions", "2"}),
      missing("target_array", Kind::target_array, {"--model", "linear", "--target-bounds", "0,90"}),
      missing(
          "target_array_mlp", Kind::target_array,
          {"--model", "mlp", "--target-bounds", "0,90", "--loss", "huber", "--normalise", "unit"}),
      row("holdout", {"--holdout", "0.3"}),
      row("holdout_figures", {"--holdout", "0.3", "--holdout-epsilon", "1", "--holdout-delta",
                              "1e-6", "--method", "dpsgd-quantile"}),
      row("holdout_dpis", {"--holdout", "0.3", "--holdout-epsilon", "1", "--holdout-delta", "1e-6",
                           "--method", "dpis", "--batch", "20"}),
      units("holdout_units",
            {"--holdout", "0.3", "--holdout-epsilon", "3", "--holdout-delta", "1e-6"}),
      units("units", {}),
      units("units_quantile", {"--method", "dpsgd-quantile"}),
      units("units_dpis", {"--method", "dpis", "--batch", "20", "--epsilon", "20"}),
      units("units_pca", {"--features", "pca", "--feature-dimensions", "2"}),
      Case{"units_dp_agd",
           Kind::units,
           {"--model", "logistic", "--method", "dp-agd", "--splits", "6"},
           0,
           true},
      Case{"units_outpert", Kind::units, {"--model", "logistic", "--method", "outpert"}, 0, true},
      Case{.name = "units_of_public_size",
           .kind = Kind::units,
           .flags = with(linear, {"--size-is-public"}),
           .exit = 0,
           .size_public = true},
      missing("units_malformed_rows", Kind::units, {}),
      text("texts", {}),
      text("texts_dpis", {"--method", "dpis", "--batch", "20"}),
      text("texts_per_layer", {"--clipping", "per-layer", "--optimizer", "adam"}),
      overflow("texts_that_overflow", {"--model", "tanh.toml"}),
      overflow("texts_that_overflow_adaclip", {"--model", "imdb-mean", "--method", "adaclip"}),
      overflow("texts_that_overflow_dpis",
               {"--model", "tanh.toml", "--method", "dpis", "--batch", "20"}),
      picture("cnn", {}),
      picture("cnn_tanh_per_layer", {"--activation", "tanh", "--clipping", "per-layer"}),
      Case{"image_array", Kind::image_array, with(kPictures, {"--classes", "10"}), 0},
      picture("scatter", {"--features", "scatter", "--model", "scatter-linear"}),
      picture("scatter_standardised",
              {"--features", "scatter", "--model", "scatter-linear", "--feature-standardise"}),
      picture("image_pca", {"--features", "pca", "--feature-dimensions", "5", "--model", "mlp"}),
      preset("preset_mnist_cnn", "mnist-cnn"),
      preset("preset_mnist_hf", "mnist-hf"),
      preset("preset_mnist_quantile", "mnist-quantile"),
      preset("preset_mnist_adaclip", "mnist-adaclip"),
      preset("preset_fashion_cnn", "fashion-cnn"),
      preset("preset_fashion_hf", "fashion-hf"),
      row("preset_adult_logistic",
          {"--preset", "adult-logistic", "--schema", "people.csv.schema.toml"}),
      row("preset_bank_logistic",
          {"--preset", "bank-logistic", "--schema", "people.csv.schema.toml"}),
  };
}

inline const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = [] {
    std::vector<Case> all = cases_as_listed();
    for (std::size_t c = 0; c < all.size(); ++c)
      if (c % 4 != 0 && !has_accountant_of_its_own(all[c]))
        all[c].flags.insert(all[c].flags.end(), kQuick.begin(), kQuick.end());
    return all;
  }();
  return kCases;
}

inline Rows data_of(const Case& c) { return c.kind == Kind::texts ? notes() : table(); }

}  // namespace cudp::neighbours
