#include "runtime/settings/table_defaults.hpp"

#include <memory>

#include <gtest/gtest.h>

#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/settings.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

/// The format of a table of `numbers` numbers and `codes` categories of three values.
Dataset format(int numbers, int codes, int classes) {
  RowLayout layout{.number_feature = {}, .codes = codes, .features = numbers + 3 * codes};
  for (int k = 0; k < numbers; ++k) layout.number_feature.push_back(k);
  Dataset d;
  d.shape = {1, 1, layout.features};
  d.classes = classes;
  d.layout = std::make_shared<const RowLayout>(std::move(layout));
  return d;
}

Network network(const Dataset& d, const std::string& model) {
  return build_network(parse_model(builtin_model(model), model, d.classes), d.shape, d.classes);
}

TrainConfig open_config(const std::vector<std::string>& open = {"batch", "epochs", "lr", "ema",
                                                                "clip"}) {
  TrainConfig c;
  c.epsilon = 1.0;
  c.delta = 1e-6;
  c.of<LeftOpen>().keys = open;
  return c;
}

constexpr TrainingSize kRows{.value = 20'000.0, .noise = 0.0};

TrainConfig chosen(TrainConfig c, const TrainingSize& size = kRows, int classes = 2,
                   const std::string& model = "") {
  const Dataset d = format(8, 5, classes);
  choose_for_table(c, size, d,
                   network(d, !model.empty() ? model
                              : classes == 1 ? "linear"
                                             : "logistic"));
  return c;
}

/// The way of the weights, which the rule holds constant: the sum of all steps' rates times C.
double travel(const TrainConfig& c, const TrainingSize& size = kRows) {
  return c.lr * c.clip_norm *
         (c.steps ? static_cast<double>(*c.steps)
                  : static_cast<double>(*c.epochs) *
                        static_cast<double>(size.steps_per_epoch(c.batch)));
}

/// As in bench/results/tables.md.
TEST(TableDefaults, AreThoseOfTheEvidence) {
  const TrainConfig c = chosen(open_config());
  EXPECT_EQ(c.batch, 800);
  EXPECT_EQ(c.epochs, 20);
  EXPECT_EQ(c.ema, 0.99);
  EXPECT_EQ(c.clip_norm, 0.5);
  EXPECT_EQ(c.lr, 6.4);
  const TrainConfig target = chosen(open_config(), kRows, 1);
  EXPECT_EQ(target.batch, 800);
  EXPECT_EQ(target.clip_norm, 0.5);
  EXPECT_EQ(target.lr, 0.048);
}

TEST(TableDefaults, LessSignalMakesAShorterWay) {
  const double few = travel(chosen(open_config(), {2'000.0, 0.0}), {2'000.0, 0.0});
  EXPECT_LT(few, 0.2 * travel(chosen(open_config())));
  TrainConfig strict = open_config();
  strict.epsilon = 0.2;
  EXPECT_LT(travel(chosen(strict)), 0.5 * travel(chosen(open_config())));
  const TrainingSize units{.value = 20'000.0, .noise = 0.0, .unit_rows = 8};
  EXPECT_LT(travel(chosen(open_config(), units)), 0.5 * travel(chosen(open_config())));
  // A target's gradients are shorter than C then, which is smaller too.
  EXPECT_EQ(chosen(open_config(), {2'000.0, 0.0}, 1).clip_norm, 0.1);
}

/// The noise of a released number decides nothing but by the number.
TEST(TableDefaults, APrivateNumberOfRowsCountsAsItWasReleased) {
  const TrainConfig exact = chosen(open_config());
  const TrainConfig noisy = chosen(open_config(), {.value = 20'000.0, .noise = 37.0});
  for (const std::string_view key : table_setting_keys())
    EXPECT_EQ(find_option(key)->get(noisy), find_option(key)->get(exact)) << key;
}

TEST(TableDefaults, WhatIsTypedStaysAndTheOthersFollow) {
  TrainConfig c = open_config({"batch", "lr", "ema", "clip"});
  c.epochs = 4;
  EXPECT_EQ(chosen(c).epochs, 4);
  EXPECT_NEAR(travel(chosen(c)), travel(chosen(open_config())), 1.0);
  c = open_config({"batch", "lr", "ema", "clip"});
  c.epochs.reset();
  c.steps = 1000;
  EXPECT_FALSE(chosen(c).epochs.has_value());
  EXPECT_NEAR(travel(chosen(c)), travel(chosen(open_config())), 1.0);
  c = open_config({"epochs", "lr", "ema", "clip"});
  c.batch = 100;
  EXPECT_EQ(chosen(c).batch, 100);
  EXPECT_EQ(chosen(c).epochs, 3);  // about 500 steps
  c = open_config({"batch", "epochs", "lr", "ema"});
  c.clip_norm = 0.05;
  EXPECT_EQ(chosen(c).clip_norm, 0.05);
  EXPECT_NEAR(travel(chosen(c)), travel(chosen(open_config())), 1.0);
  c = open_config();
  c.optimizer = OptimizerKind::sgd;
  EXPECT_NEAR(chosen(c).lr, 10.0 * chosen(open_config()).lr, 0.1);
  c = open_config();
  c.schedule = ScheduleKind::cosine;
  EXPECT_NEAR(chosen(c).lr, 2.0 * chosen(open_config()).lr, 0.5);
  c = open_config();
  c.optimizer = OptimizerKind::adam;
  EXPECT_EQ(chosen(c).lr, 0.1);
  c = open_config({});
  EXPECT_EQ(chosen(c).batch, TrainConfig{}.batch);
  EXPECT_EQ(chosen(c).lr, TrainConfig{}.lr);
}

/// A noise multiplier says how much is learned just as a budget does.
TEST(TableDefaults, SigmaServesForEpsilon) {
  TrainConfig c = open_config();
  c.epsilon.reset();
  c.sigma = 4.0;
  const TrainConfig less = chosen(c);
  EXPECT_EQ(less.batch, 800);
  c.sigma = 64.0;
  EXPECT_LT(chosen(c).lr, less.lr);
}

TEST(TableDefaults, AreForOneDenseLayerByMethodsLikeDpsgd) {
  const auto stay = [](const TrainConfig& c, const std::string& model = "") {
    const TrainConfig after = chosen(c, kRows, 2, model);
    return after.batch == c.batch && after.lr == c.lr && after.ema == c.ema;
  };
  EXPECT_FALSE(stay(open_config()));
  EXPECT_TRUE(stay(open_config(), "mlp"));
  for (const MethodEntry& method : methods()) {
    TrainConfig c = open_config();
    c.method = method.name;
    EXPECT_EQ(stay(c), !method.gives_privacy || !method.stochastic || !method.own_tuning.empty())
        << method.name;
    EXPECT_EQ(method.own_tuning.empty(), method.tuned_by.empty()) << method.name;
    for (const std::string& key : method.tuned_by) EXPECT_TRUE(takes(method, key)) << key;
  }
  TrainConfig c = open_config();
  Dataset images = format(8, 5, 2);
  const Network logistic = network(images, "logistic");
  images.layout.reset();
  choose_for_table(c, kRows, images, logistic);
  EXPECT_EQ(c.batch, TrainConfig{}.batch);
  EXPECT_EQ(table_defaults_line(c, kRows, images, logistic), "");
}

TEST(TableDefaults, WhereNoBatchIsStatedFewRowsAreOneBatch) {
  Dataset images = format(8, 5, 2);
  const Network logistic = network(images, "logistic");
  images.layout.reset();
  const TrainingSize few{.value = 399.7, .noise = 37.0};
  TrainConfig c = open_config();
  choose_for_table(c, few, images, logistic);
  EXPECT_EQ(c.batch, 399);
  EXPECT_EQ(c.lr, open_config().lr);
  EXPECT_EQ(table_defaults_line(c, few, images, logistic),
            "chosen for about 400 rows: batch 399, which is all of them; what you type wins");
  TrainConfig none = open_config();
  choose_for_table(none, {.value = 0.4, .noise = 37.0}, images, logistic);
  EXPECT_EQ(none.batch, 1);
  TrainConfig typed = open_config({"epochs", "lr", "ema", "clip"});
  choose_for_table(typed, few, images, logistic);
  EXPECT_EQ(typed.batch, TrainConfig{}.batch);
  EXPECT_EQ(table_defaults_line(typed, few, images, logistic), "");
}

TEST(TableDefaults, ATableOfAFewRowsHasSettingsTooAndSoHasAHugeOne) {
  for (const double rows : {1.0, 7.0, 3e9}) {
    const TrainConfig c = chosen(open_config(), {.value = rows, .noise = 0.0});
    EXPECT_GE(c.batch, 1);
    EXPECT_LE(static_cast<double>(c.batch), rows);
    EXPECT_GT(c.lr, 0.0);
    // What is written can be read.
    TrainConfig back;
    apply_settings(parse_settings(write_config(c, Audience::owner), "config"), back);
    EXPECT_EQ(back.lr, c.lr);
    EXPECT_EQ(back.batch, c.batch);
  }
}

TEST(TableDefaults, TheLineNamesWhatWasChosenAndNothingElse) {
  const Dataset d = format(8, 5, 2);
  const Network n = network(d, "logistic");
  TrainConfig c = open_config({"lr", "clip"});
  c.batch = 500;
  c.epochs = 25;
  c.ema = 0.5;
  choose_for_table(c, kRows, d, n);
  EXPECT_EQ(table_defaults_line(c, {20'000.0, 37.0}, d, n),
            "chosen for a table of about 20000 rows, 24 parameters and this budget: lr 3.2, clip "
            "0.5; what you type wins");
  c.of<LeftOpen>().keys.clear();
  EXPECT_EQ(table_defaults_line(c, kRows, d, n), "");
}

std::vector<std::string> left_open(
    std::initializer_list<std::pair<const char*, const char*>> given) {
  Settings s;
  for (const auto& [key, text] : given)
    s[key] = {parse_value(*find_option(key), text, key), std::string("--") + key};
  std::vector<std::string> notes;
  return resolve_config(s, notes).of<LeftOpen>().keys;
}

using Keys = std::vector<std::string>;

TEST(TableDefaults, OnlyWhatNoSourceStatesIsLeftOpen) {
  const auto of = [](std::initializer_list<std::pair<const char*, const char*>> more) {
    std::vector<std::pair<const char*, const char*>> all = {
        {"dataset", "p.csv"}, {"schema", "p.toml"}, {"epsilon", "1"}, {"delta", "1e-6"}};
    all.insert(all.end(), more.begin(), more.end());
    Settings s;
    for (const auto& [key, text] : all)
      s[key] = {parse_value(*find_option(key), text, key), std::string("--") + key};
    std::vector<std::string> notes;
    return resolve_config(s, notes).of<LeftOpen>().keys;
  };
  EXPECT_EQ(of({}), (Keys{"batch", "epochs", "lr", "ema", "clip"}));
  EXPECT_EQ(of({{"steps", "10"}, {"lr", "0.5"}}), (Keys{"batch", "ema", "clip"}));
  EXPECT_EQ(of({{"preset", "adult-logistic"}}), Keys{});
  EXPECT_EQ(left_open({{"dataset", "adult"}, {"epsilon", "1"}, {"delta", "1e-6"}}), Keys{});
  const TemporaryFolder folder;
  const std::string file = folder / "run.toml";
  write_text(file, "batch = 512\nepochs = 20\n");
  EXPECT_EQ(of({{"config", file.c_str()}}), (Keys{"lr", "ema", "clip"}));
}

/// What a user of such a method would type, in the rule's own numbers.
TEST(TableDefaults, AMethodWithSettingsOfItsOwnIsToldWhatToType) {
  const Dataset d = format(8, 5, 2);
  const Network n = network(d, "logistic");
  TrainConfig c = open_config();
  c.method = "dpsgd-quantile";
  const TrainConfig before = c;
  choose_for_table(c, kRows, d, n);
  EXPECT_EQ(c.lr, before.lr);
  EXPECT_EQ(c.batch, before.batch);
  const TrainConfig usual = chosen(open_config());
  const std::string line = table_defaults_line(c, {20'000.0, 37.0}, d, n);
  EXPECT_TRUE(
      line.starts_with("for a table of about 20000 rows and this budget dpsgd would start "
                       "from batch 800, epochs 20, ema 0.99 and lr x clip "))
      << line;
  EXPECT_NE(line.find("lr x clip " + std::to_string(usual.lr * usual.clip_norm).substr(0, 2)),
            std::string::npos)
      << line;
  EXPECT_NE(line.find("dpsgd-quantile needs settings of its own: "), std::string::npos) << line;
  EXPECT_TRUE(line.ends_with("; and --lr")) << line;
  for (const char* const method : {"adaclip", "norm-bound"}) {
    c.method = method;
    EXPECT_NE(table_defaults_line(c, kRows, d, n).find("needs settings of its own: "),
              std::string::npos);
  }
  // Of a rate that is typed, of other data and of other models nothing is said.
  c.of<LeftOpen>().keys = {"batch", "epochs", "ema", "clip"};
  EXPECT_EQ(table_defaults_line(c, kRows, d, n), "");
  c = before;
  EXPECT_EQ(table_defaults_line(c, kRows, d, network(d, "mlp")), "");
}

/// Rounded down: no table has a larger rate than one of many rows.
TEST(TableDefaults, NoRateIsAboveThatOfALargeTable) {
  for (int rows = 25; rows < 3000; ++rows) {
    const TrainConfig c = chosen(open_config(), {static_cast<double>(rows), 3.0});
    EXPECT_LE(25 * c.batch, rows) << rows;
  }
}

}  // namespace
}  // namespace cudp
