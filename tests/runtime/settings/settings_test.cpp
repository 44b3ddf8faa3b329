#include "runtime/settings/settings.hpp"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "runtime/base/error.hpp"
#include "runtime/data/text_options.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/presets.hpp"
#include "tests/support/print.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

Settings flags(std::initializer_list<std::pair<const char*, const char*>> given) {
  Settings s;
  for (const auto& [key, text] : given) {
    const std::string place = std::string("--") + key;
    s[key] = {parse_value(*find_option(key), text, place), place};
  }
  return s;
}

TrainConfig resolved(const Settings& given) {
  std::vector<std::string> notes;
  return resolve_config(given, notes);
}

/// The refusal's text; fails the test if there is none, or if it is more than one line.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const InputError& e) {
    std::string what = e.what();
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
    return what;
  }
  ADD_FAILURE() << "expected a refusal";
  return "";
}

TEST(Settings, EveryOptionSurvivesBeingWrittenAndRead) {
  TrainConfig c;
  c.dataset = "a folder/with \"quotes\" and \\";
  c.data_dir = "elsewhere";
  c.schema = "s.toml";
  c.test_data = "t.csv";
  c.size_is_public = true;
  c.features = Features::scatter;
  c.feature_groups = 9;
  c.feature_whiten = true;
  c.feature_cache = "none";
  c.model = "mlp";
  c.activation = "relu";
  c.epsilon = 0.1;
  c.delta = 1e-7;
  c.clip_norm = 1.0 / 3.0;
  c.clipping = Clipping::per_layer;
  c.rng = Generator::philox;
  c.seed = 123456789012345;
  c.unsafe_diagnostics = true;
  c.batch = 7;
  c.epochs.reset();
  c.steps = 99;
  c.lr = 2.0;
  c.optimizer = OptimizerKind::adamw;
  c.schedule = ScheduleKind::polynomial;
  c.ema = 0.99;
  c.device = Device::cpu;
  c.threads = 3;
  c.checkpoint_every = 5;
  TrainConfig back;
  apply_settings(parse_settings(write_config(c, Audience::owner), "config"), back);
  int compared = 0;
  for (const Option& o : train_options()) {
    if (o.scope == Scope::command) continue;
    EXPECT_EQ(o.get(back), o.get(c)) << o.key;
    ++compared;
  }
  EXPECT_GT(compared, 30);
}

TEST(Settings, WhatIsReleasedNamesNoFoldersAndNoMachine) {
  TrainConfig c;
  c.dataset = "/home/someone/secret/patients.csv";
  c.schema = "/home/someone/secret/schema.toml";
  c.data_dir = "/home/someone/data";
  c.model = "/home/someone/net.toml";
  c.threads = 7;
  const std::string text = write_config(c, Audience::release);
  EXPECT_EQ(text.find("someone"), std::string::npos) << text;
  EXPECT_EQ(text.find("threads"), std::string::npos) << text;
  EXPECT_NE(text.find("dataset = \"patients.csv\""), std::string::npos) << text;
}

/// A folder of one's own with the name of published data is not taken for it.
TEST(Settings, AReleasedPathIsNotTheNameOfPublishedData) {
  for (const char* const path : {"/a/mnist", "mnist/", "./mnist"}) {
    TrainConfig c;
    c.dataset = path;
    c.of<TextOptions>().embedding = "a/glove";
    const std::string text = write_config(c, Audience::release);
    EXPECT_NE(text.find("dataset = \"./mnist\""), std::string::npos) << text;
    EXPECT_NE(text.find("embedding = \"./glove\""), std::string::npos) << text;
  }
  TrainConfig published, earlier;
  published.dataset = "mnist";
  earlier.dataset = "people";  // written without "./"
  EXPECT_NO_THROW((void)resolve_resumed(flags({{"dataset", "/b/people"}}), earlier));
  EXPECT_NE(refusal([&] {
              (void)resolve_resumed(flags({{"dataset", "/b/mnist"}}), published);
            }).find("--dataset: expected \"mnist\""),
            std::string::npos);
  EXPECT_NE(write_config(published, Audience::release).find("dataset = \"mnist\""),
            std::string::npos);
}

/// Settings of the experiment that are texts of the user's own, with a value that has slashes.
struct SlashedText {
  const char* key;
  const char* value;
};
constexpr SlashedText kNoPaths[] = {
    {"freeze", "a/h"},     {"embedding-tensor", "a/vectors"},
    {"arrays", "a/x,a/y"}, {"test-arrays", "a/x,y"},
    {"license", "a/mit"},  {"activation", "a/relu"},
};
constexpr SlashedText kPaths[] = {
    {"dataset", "/a/t.csv"},    {"schema", "/a/s.toml"},     {"labels", "/a/l.npy"},
    {"test-data", "/a/t.csv"},  {"test-labels", "/a/t.npy"}, {"vocabulary", "/a/words"},
    {"embedding", "/a/v.vec"},  {"model", "/a/net.toml"},    {"init", "/a/w.safetensors"},
    {"compare-with", "/a/run"},
};

TEST(Settings, OnlyPathsLoseTheirFolders) {
  for (const auto& [key, value] : kNoPaths) {
    TrainConfig then, now;
    find_option(key)->set(then, std::string(value), key);
    find_option(key)->set(now, "b" + std::string(value).substr(1), key);
    EXPECT_NE(write_config(then, Audience::release).find(value), std::string::npos) << key;
    const Value changed = *find_option(key)->get(now);
    const std::string text = std::get<std::string>(changed);  // differs in its first folder only
    EXPECT_NE(refusal([&] {
                (void)resolve_resumed(flags({{key, text.c_str()}}), then);
              }).find(std::string("--") + key + ": expected \"" + value),
              std::string::npos)
        << key;
  }
  for (const auto& [key, value] : kPaths) {
    TrainConfig then;
    find_option(key)->set(then, std::string(value), key);
    EXPECT_EQ(write_config(then, Audience::release).find("/a/"), std::string::npos) << key;
    const std::string moved = "/b" + std::string(value).substr(2);
    EXPECT_NO_THROW((void)resolve_resumed(flags({{key, moved.c_str()}}), then)) << key;
  }
  // Each text of the experiment that is free is in one of the two lists.
  for (const Option& o : train_options()) {
    if (o.scope != Scope::experiment || o.kind != ValueKind::text || !o.choices.empty()) continue;
    const auto has_key = [&](const SlashedText& t) { return o.key == t.key; };
    const bool numbers = o.key == "input-shape" || o.key == "target-bounds" ||
                         o.key == "class-weights" || o.key == "device";
    EXPECT_TRUE(numbers || std::ranges::any_of(kNoPaths, has_key) ||
                std::ranges::any_of(kPaths, has_key))
        << o.key << ": is it a path?";
  }
}

TEST(Settings, UnknownKeysNameTheNearestKnownOne) {
  EXPECT_EQ(refusal([] { parse_settings("learning_rate = 0.1\n", "run.toml"); }),
            "run.toml, line 1, learning_rate: expected a known key, found 'learning_rate'; the "
            "nearest is 'lr'");
  EXPECT_EQ(refusal([] { parse_settings("xyzzyx = 1\n", "run.toml"); }),
            "run.toml, line 1, xyzzyx: expected a known key, found 'xyzzyx'; cudp train --help-all "
            "lists them");
  EXPECT_EQ(refusal([] { parse_settings("lr = 0.1\nbacth = 512\n", "run.toml"); }),
            "run.toml, line 2, bacth: expected a known key, found 'bacth'; the nearest is 'batch'");
  EXPECT_NE(refusal([] { preset_settings("mnist-ccn"); }).find("mnist-cnn"), std::string::npos);
}

/// What a file or a preset says of one method.
TEST(Settings, AMethodsTableIsForThatMethod) {
  const std::string text = "lr = 0.5\nbatch = 64\n[sgd]\nlr = 0.05\n[adaclip]\nlr = 2\n";
  const auto lr = [&](std::string_view method) {
    return std::get<double>(parse_settings(text, "run.toml", method).at("lr").value);
  };
  EXPECT_EQ(lr("sgd"), 0.05);
  EXPECT_EQ(lr("dpsgd"), 0.5);
  EXPECT_EQ(lr(""), 0.5);
  EXPECT_EQ(parse_settings(text, "run.toml", "sgd").size(), 2u);
  EXPECT_EQ(refusal([] { parse_settings("[sgd]\nbacth = 512\n", "run.toml"); }),
            "run.toml, line 2, bacth: expected a known key, found 'bacth'; the nearest is 'batch'");
  EXPECT_NE(refusal([] { parse_settings("[sdg]\nbatch = 512\n", "run.toml"); }).find("'sdg'"),
            std::string::npos);
  EXPECT_NE(refusal([] { parse_settings("[sgd.lr]\nbatch = 512\n", "run.toml"); }).find("single"),
            std::string::npos);
  for (const char* key : {"method = 'dpsgd'", "preset = 'mnist-cnn'"})
    EXPECT_NE(refusal([&] {
                parse_settings(std::string("[sgd]\n") + key, "run.toml");
              }).find("expected outside a method's table, found in [sgd]"),
              std::string::npos);
  const Settings steps = parse_settings("epochs = 3\n[sgd]\nsteps = 7\n", "run.toml", "sgd");
  EXPECT_TRUE(steps.contains("steps"));
  EXPECT_FALSE(steps.contains("epochs"));
  // Whoever names the method, flag, file or preset.
  EXPECT_EQ(resolved(flags({{"preset", "mnist-cnn"}})).lr, 0.5);
  EXPECT_EQ(resolved(flags({{"preset", "mnist-cnn"}, {"method", "sgd"}})).lr, 0.05);
  EXPECT_EQ(resolved(flags({{"dataset", "mnist"}, {"method", "sgd"}})).lr, 0.05);
  EXPECT_EQ(resolved(flags({{"preset", "mnist-cnn"}, {"method", "sgd"}, {"lr", "2"}})).lr, 2.0);
  const TemporaryFolder folder;
  const std::string file = (folder.path() / "c.toml").string();
  write_text(file, "preset = 'mnist-cnn'\nmethod = 'sgd'\n");
  EXPECT_EQ(resolved(flags({{"config", file.c_str()}})).lr, 0.05);
  write_text(file, "preset = 'mnist-cnn'\n[sgd]\nlr = 0.25\n[dpsgd]\nlr = 0.75\n");
  EXPECT_EQ(resolved(flags({{"config", file.c_str()}})).lr, 0.75);
  EXPECT_EQ(resolved(flags({{"config", file.c_str()}, {"method", "sgd"}})).lr, 0.25);
}

TEST(Settings, SyntaxErrorsNameTheLine) {
  EXPECT_NE(refusal([] {
              parse_settings("lr = 0.1\nbatch = = 2\n", "run.toml");
            }).find("run.toml, line 2"),
            std::string::npos);
  EXPECT_NE(refusal([] { read_settings("no/such.toml"); }).find("no/such.toml"), std::string::npos);
  EXPECT_NE(refusal([] { parse_settings("batch = [1]", "run.toml"); }).find("line 1, batch"),
            std::string::npos);
}

TEST(Settings, TomlTypesAreChecked) {
  TrainConfig c;
  apply_settings(parse_settings("lr = 1\nbatch = 64\njson = true\noptimizer = 'adam'", "f"), c);
  EXPECT_EQ(c.lr, 1.0);
  EXPECT_EQ(c.batch, 64);
  EXPECT_TRUE(c.json);
  EXPECT_EQ(c.optimizer, OptimizerKind::adam);
  for (const char* wrong : {"batch = 64.5", "batch = '64'", "lr = 'fast'", "json = 1",
                            "optimizer = 3", "dataset = 3", "dataset = ''", "optimizer = 'sdg'"}) {
    const std::string what = refusal([&] { apply_settings(parse_settings(wrong, "run.toml"), c); });
    EXPECT_NE(what.find("run.toml, line 1"), std::string::npos) << what;
    EXPECT_NE(what.find("expected"), std::string::npos) << what;
  }
}

TEST(Settings, ValuesOutOfRangeAreRefused) {
  for (const auto& [key, text] : std::initializer_list<std::pair<const char*, const char*>>{
           {"delta", "0"},       {"delta", "1"},       {"delta", "-1e-5"}, {"delta", "nan"},
           {"delta", "small"},   {"epsilon", "0"},     {"epsilon", "-1"},  {"epsilon", "inf"},
           {"sigma", "0"},       {"clip", "0"},        {"batch", "0"},     {"batch", "1e3"},
           {"batch", "2.5"},     {"batch", "-3"},      {"epochs", "0"},    {"lr", "-0.5"},
           {"momentum", "1"},    {"ema", "1"},         {"threads", "-1"},  {"batch", "12x"},
           {"json", "maybe"},    {"clipping", "hard"}, {"final-lr", "2"},  {"beta1", "-0.1"},
           {"seed", "-1"},       {"method", "sgdd"},   {"device", "tpu"},  {"batch", ""},
           {"precision", "fp16"}}) {
    const std::string what = refusal([&, k = key, t = text] {
      TrainConfig c;
      apply_settings(flags({{k, t}}), c);
    });
    EXPECT_EQ(what.find(std::string("--") + key + ": expected "), 0u) << what;
  }
  EXPECT_EQ(refusal([] {
              TrainConfig c;
              apply_settings(flags({{"delta", "2"}}), c);
            }),
            "--delta: expected a number in (0, 1), found 2.0");
}

TEST(Settings, FlagsBeatTheFileBeatsThePresetBeatsDefaults) {
  const TemporaryFolder folder;
  const std::string file = folder / "run.toml";
  write_text(file, "preset = 'mnist-cnn'\nbatch = 100\nlr = 0.25\n");
  const TrainConfig c = resolved(flags({{"config", file.c_str()}, {"lr", "0.125"}}));
  const TrainConfig preset = resolved(flags({{"preset", "mnist-cnn"}}));
  EXPECT_EQ(c.lr, 0.125);
  EXPECT_EQ(c.batch, 100);
  EXPECT_EQ(c.dataset, "mnist");
  EXPECT_EQ(c.epochs, preset.epochs);
  EXPECT_EQ(c.clip_norm, preset.clip_norm);
  EXPECT_EQ(c.beta2, TrainConfig{}.beta2);
  EXPECT_NE(preset.batch, 100);
}

TEST(Settings, ADataSetBringsItsOwnPresetButNoBudget) {
  std::vector<std::string> notes;
  const TrainConfig c =
      resolve_config(flags({{"dataset", "adult"}, {"epsilon", "2"}, {"delta", "1e-6"}}), notes);
  EXPECT_EQ(c.model, "logistic");
  EXPECT_EQ(c.epsilon, 2.0);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_NE(notes[0].find("adult-logistic"), std::string::npos);
  EXPECT_NE(refusal([] {
              resolved(flags({{"dataset", "adult"}, {"delta", "1e-6"}}));
            }).find("--epsilon"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              resolved(flags({{"dataset", "adult"}, {"sigma", "1"}}));
            }).find("--delta"),
            std::string::npos);
  EXPECT_NE(refusal([] {
              resolved(flags({{"sigma", "1"}, {"delta", "1e-5"}}));
            }).find("--dataset"),
            std::string::npos);
}

TEST(Settings, AllThatIsMissingIsNamedAtOnce) {
  EXPECT_EQ(refusal([] { resolved({}); }),
            "expected --dataset, --epsilon and --delta, found none of them; a preset has them all "
            "(--preset NAME)");
  EXPECT_EQ(refusal([] {
              resolved(flags({{"dataset", "p.csv"}, {"sigma", "1"}}));
            }),
            "expected --delta and --schema, found none of them; they may be in a file, too "
            "(--config FILE)");
  // One thing alone has a sentence of its own; without privacy no budget is missing.
  EXPECT_EQ(refusal([] {
              resolved(flags({{"dataset", "glyphs"}, {"delta", "1e-5"}}));
            }).find("--epsilon: expected a privacy budget"),
            0u);
  EXPECT_EQ(resolved(flags({{"dataset", "glyphs"}, {"method", "sgd"}})).method, "sgd");
}

/// The notes of a resolution: the first line of a run.
std::string first_line(const Settings& given) {
  std::vector<std::string> notes;
  resolve_config(given, notes);
  return notes.empty() ? "" : notes.front();
}

TEST(Settings, TheFirstLineNamesThePresetAndWhatReplacesIt) {
  EXPECT_EQ(first_line(flags({{"preset", "mnist-cnn"}})), "preset mnist-cnn");
  EXPECT_EQ(first_line(flags({{"preset", "mnist-cnn"}, {"seed", "1"}, {"batch", "512"}})),
            "preset mnist-cnn");
  EXPECT_EQ(first_line(flags({{"preset", "mnist-cnn"}, {"batch", "256"}, {"steps", "10"}})),
            "preset mnist-cnn, but batch 256 instead of 512, steps 10 instead of epochs 40");
  EXPECT_EQ(first_line(flags({{"dataset", "adult"}, {"epsilon", "2"}, {"delta", "1e-6"}})),
            "preset adult-logistic, tuned for this data set, without its budget");
  EXPECT_EQ(first_line(flags({{"preset", "cifar-hf"}, {"feature-groups", "27"}})),
            "preset cifar-hf, but no feature-standardise");
  EXPECT_EQ(first_line(flags({{"dataset", "a"}, {"epsilon", "2"}, {"delta", "1e-6"}})), "");
}

/// Where a method needs other settings than the preset's, the second line says what to type.
TEST(Settings, APresetOfAnotherMethodSaysSo) {
  const auto second_line = [](const Settings& given) {
    std::vector<std::string> notes;
    resolve_config(given, notes);
    return notes.size() > 1 ? notes[1] : std::string();
  };
  EXPECT_EQ(
      second_line(flags({{"preset", "adult-logistic"}, {"method", "dpsgd-quantile"}})),
      "preset adult-logistic was tuned for dpsgd, with lr 0.5, clip 0.5; dpsgd-quantile needs "
      "settings of its own: its gradients are as long as the clipping norm that it moves to; "
      "type --quantile-normalise, which divides by that norm");
  const std::string adaclip =
      second_line(flags({{"preset", "adult-logistic"}, {"method", "adaclip"}}));
  EXPECT_NE(adaclip.find("adaclip needs settings of its own: "), std::string::npos) << adaclip;
  EXPECT_NE(adaclip.find("--lr"), std::string::npos) << adaclip;
  EXPECT_NE(second_line(flags({{"preset", "adult-logistic"}, {"method", "norm-bound"}})), "");
  // The preset that the data set brings, and one that is tuned for the method.
  EXPECT_NE(second_line(flags(
                {{"dataset", "bank"}, {"method", "adaclip"}, {"epsilon", "1"}, {"delta", "1e-5"}})),
            "");
  EXPECT_NE(second_line(flags({{"preset", "mnist-cnn"}, {"method", "dpsgd-quantile"}}))
                .find(", or --preset mnist-quantile, which is tuned for it"),
            std::string::npos);
  EXPECT_NE(second_line(flags({{"preset", "mnist-quantile"}, {"method", "dpsgd"}}))
                .find("dpsgd needs settings of its own: type --lr and --clip, or --preset "
                      "mnist-cnn, which is tuned for it"),
            std::string::npos);
  // Nothing where the preset serves the method, or the user types what is needed.
  for (const char* method : {"dpsgd", "dpsgd-decay", "dpis", "adp-sgd", "sgd"})
    EXPECT_EQ(second_line(flags({{"preset", "adult-logistic"}, {"method", method}})), "") << method;
  EXPECT_EQ(second_line(flags({{"preset", "mnist-quantile"}})), "");
  EXPECT_EQ(second_line(flags({{"preset", "adult-logistic"},
                               {"method", "dpsgd-quantile"},
                               {"quantile-normalise", "true"}})),
            "");
  EXPECT_EQ(second_line(flags({{"preset", "adult-logistic"}, {"method", "adaclip"}, {"lr", "8"}})),
            "");
}

TEST(Settings, AnotherOptimizerDropsWhatWasTunedForThePresets) {
  const TrainConfig adam = resolved(flags({{"preset", "mnist-cnn"}, {"optimizer", "adam"}}));
  EXPECT_EQ(adam.lr, 1e-3);
  EXPECT_EQ(adam.batch, resolved(flags({{"preset", "mnist-cnn"}})).batch);
  EXPECT_EQ(first_line(flags({{"preset", "mnist-cnn"}, {"optimizer", "adam"}})),
            "preset mnist-cnn, but optimizer adam instead of momentum; its lr 0.5 was tuned for "
            "another optimizer and is dropped: lr 0.001");
  // The data set's own preset, and one with a schedule.
  EXPECT_EQ(
      resolved(
          flags(
              {{"dataset", "mnist"}, {"optimizer", "adamw"}, {"epsilon", "1"}, {"delta", "1e-5"}}))
          .lr,
      1e-3);
  const TrainConfig momentum =
      resolved(flags({{"preset", "imdb-mean"}, {"optimizer", "momentum"}}));
  EXPECT_EQ(momentum.lr, 0.5);
  EXPECT_EQ(momentum.schedule, ScheduleKind::constant);
  // What is typed stays, and so does a preset whose optimizer is typed.
  EXPECT_EQ(resolved(flags({{"preset", "mnist-cnn"}, {"optimizer", "adam"}, {"lr", "0.01"}})).lr,
            0.01);
  const TrainConfig same = resolved(flags({{"preset", "imdb-mean"}, {"optimizer", "adam"}}));
  EXPECT_EQ(same.lr, 0.28);
  EXPECT_EQ(same.schedule, ScheduleKind::cosine);
  EXPECT_EQ(resolved(flags({{"preset", "mnist-cnn"}, {"optimizer", "momentum"}})).lr, 0.5);
  // A file chooses too.
  const TemporaryFolder folder;
  const std::string file = folder / "run.toml";
  write_text(file, "preset = 'mnist-cnn'\noptimizer = 'adam'\n");
  EXPECT_EQ(resolved(flags({{"config", file.c_str()}})).lr, 1e-3);
  // So that a resume with the same flags is of the same run.
  EXPECT_EQ(resolve_resumed(flags({{"preset", "mnist-cnn"}, {"optimizer", "adam"}}), adam).lr,
            1e-3);
}

/// config.toml names the preset, and repeats the run all the same; one of an older version, which
/// names none, is read as before.
TEST(Settings, AResolvedConfigRecordsItsPresetAndRepeatsTheRun) {
  const TemporaryFolder folder;
  const std::string file = folder / "config.toml";
  const std::vector<std::vector<std::pair<const char*, const char*>>> more = {
      {},
      {{"optimizer", "adam"}},
      {{"sigma", "1.5"}, {"steps", "10"}},
      {{"method", "sgd"}},
      {{"batch", "64"}, {"lr", "3"}, {"schedule", "cosine"}}};
  for (const std::string& name : preset_names()) {
    for (const auto& others : more) {
      Settings given = flags({{"preset", name.c_str()}});
      if (!others.empty() && std::string(others[0].second) == "sgd" &&
          resolved(given).method != "dpsgd")
        continue;
      for (const auto& [key, text] : others)
        given[key] = {parse_value(*find_option(key), text, key), key};
      // Features that have a share of the budget need one.
      if (given.contains("sigma") && resolved(flags({{"preset", name.c_str()}})).feature_share &&
          resolved(flags({{"preset", name.c_str()}})).features == Features::pca)
        continue;
      const TrainConfig first = resolved(given);
      EXPECT_EQ(first.preset, name);
      for (const Audience audience : {Audience::owner, Audience::release}) {
        std::string text = write_config(first, audience);
        const std::string line = "preset = \"" + name + "\"\n";
        ASSERT_NE(text.find(line), std::string::npos) << text;
        for (const bool old : {false, true}) {
          if (old) text.erase(text.find(line), line.size());
          write_text(file, text);
          const TrainConfig again = resolved(flags({{"config", file.c_str()}}));
          for (const Option& o : train_options()) {
            if (o.scope == Scope::experiment) {
              EXPECT_EQ(o.get(again), o.get(first)) << name << " " << o.key << " " << old;
            }
          }
          if (!old) {
            EXPECT_EQ(again.preset, name);
          }
        }
      }
    }
  }
  // A preset typed at a resume says where settings came from, and changes nothing by itself.
  TrainConfig stored = resolved(flags({{"preset", "mnist-cnn"}}));
  stored.preset.clear();
  EXPECT_EQ(resolve_resumed(flags({{"preset", "mnist-cnn"}}), stored).lr, stored.lr);
}

TEST(Settings, AnswersToOneQuestionReplaceEachOther) {
  const TrainConfig c =
      resolved(flags({{"preset", "mnist-cnn"}, {"sigma", "1.5"}, {"steps", "10"}}));
  EXPECT_EQ(c.sigma, 1.5);
  EXPECT_FALSE(c.epsilon);
  EXPECT_EQ(c.steps, 10);
  EXPECT_FALSE(c.epochs);
  const TrainConfig both =
      resolved(flags({{"preset", "mnist-cnn"}, {"sigma", "1.5"}, {"epsilon", "4"}}));
  EXPECT_EQ(both.sigma, 1.5);
  EXPECT_EQ(both.epsilon, 4.0);
  EXPECT_NE(refusal([] {
              resolved(flags({{"preset", "mnist-cnn"}, {"steps", "10"}, {"epochs", "1"}}));
            }).find("--steps"),
            std::string::npos);
}

TEST(Settings, PathsAreKeptFromTheRoot) {
  const TrainConfig c = resolved(flags(
      {{"dataset", "some/table.csv"}, {"model", "net.toml"}, {"epsilon", "1"}, {"delta", "1e-5"}}));
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(c.dataset, here + "/some/table.csv");
  EXPECT_EQ(c.model, here + "/net.toml");
  EXPECT_EQ(c.data_dir, here + "/data");
  EXPECT_EQ(c.schema, "");
  const TrainConfig again =
      resolve_resumed(flags({{"dataset", "./some/table.csv"}, {"model", "net.toml"}}), c);
  EXPECT_EQ(again.dataset, c.dataset);
}

TEST(Settings, EveryPresetIsComplete) {
  EXPECT_GE(preset_names().size(), 6u);
  for (const std::string& name : preset_names()) {
    const TrainConfig c = resolved(flags({{"preset", name.c_str()}}));
    EXPECT_FALSE(preset_for(c.dataset).empty()) << name;
    EXPECT_TRUE(c.epsilon && c.delta) << name;
  }
  EXPECT_EQ(preset_for("nothing"), "");
  EXPECT_EQ(preset_for("mnist"), "mnist-cnn");
  EXPECT_EQ(preset_for("mnist", "scatter"), "mnist-hf");
  EXPECT_EQ(preset_for("cifar-10", "scatter"), "cifar-hf");
  const TrainConfig groups = resolved(flags({{"preset", "cifar-hf"}, {"feature-groups", "27"}}));
  EXPECT_FALSE(groups.feature_standardise || groups.feature_sigma);
  EXPECT_TRUE(resolved(flags({{"preset", "cifar-hf"}})).feature_standardise);
  EXPECT_EQ(preset_for("adult", "scatter"), "");
  // One that is for a method is not taken for another.
  EXPECT_EQ(preset_for("mnist", "pca", "adaclip"), "mnist-adaclip");
  EXPECT_EQ(preset_for("mnist", "none", "adp-sgd"), "mnist-cnn");
  EXPECT_EQ(preset_for("mnist", "pca"), "");
  EXPECT_EQ(
      resolved(
          flags({{"dataset", "mnist"}, {"features", "pca"}, {"epsilon", "1"}, {"delta", "1e-5"}}))
          .method,
      "dpsgd");
}

TEST(Settings, ThePresetOfADataSetIsTheOneForItsFeatures) {
  const auto given = [](const char* features) {
    return resolved(
        flags({{"dataset", "mnist"}, {"features", features}, {"sigma", "1"}, {"delta", "1e-5"}}));
  };
  EXPECT_EQ(given("scatter").model, "scatter-cnn");
  EXPECT_EQ(given("none").model, "cnn");
}

TEST(Settings, AResumeMayNotChangeTheExperiment) {
  const TrainConfig stored = resolved(flags({{"preset", "mnist-cnn"}, {"epochs", "3"}}));
  EXPECT_EQ(resolve_resumed(flags({{"threads", "2"}}), stored).threads, 2);
  EXPECT_EQ(resolve_resumed(flags({{"preset", "mnist-cnn"}, {"epochs", "3"}}), stored).epochs, 3);
  EXPECT_EQ(
      refusal([&] {
        resolve_resumed(flags({{"lr", "9"}}), stored);
      }),
      "--lr: expected " + value_text(Value(stored.lr)) + " as in the run being resumed, found 9.0");
  EXPECT_NE(refusal([&] {
              resolve_resumed(flags({{"sigma", "0.1"}}), stored);
            }).find("expected"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              resolve_resumed(flags({{"preset", "mnist-cnn"}}), stored);
            }).find("--epochs"),
            std::string::npos);
}

/// A flag that the method does not look at is refused, with the methods that do.
TEST(Settings, ADeltaWithoutPrivacyIsIgnoredWithOneLine) {
  std::vector<std::string> notes;
  const TrainConfig c = resolve_config(
      flags({{"preset", "glyphs-cnn"}, {"method", "sgd"}, {"delta", "1e-6"}}), notes);
  EXPECT_EQ(c.method, "sgd");
  EXPECT_EQ(std::ranges::count(notes, "--delta is ignored: --method sgd gives no privacy"), 1)
      << testing::PrintToString(notes);
  EXPECT_EQ(
      refusal([] {
        return resolved(flags({{"preset", "glyphs-cnn"}, {"method", "sgd"}, {"epsilon", "1"}}));
      }).find("--epsilon: expected none with --method sgd"),
      0u);
}

TEST(Settings, AMethodRefusesTheFlagsOfOthers) {
  const auto given = [](const char* method, const char* key, const char* text) {
    return refusal([&] {
      resolved(flags({{"preset", "mnist-cnn"}, {"method", method}, {key, text}}));
    });
  };
  EXPECT_NE(given("dpsgd", "dpis-floor", "0.1").find("dpis"), std::string::npos);
  EXPECT_NE(given("dpsgd", "adaclip-most", "1").find("adaclip"), std::string::npos);
  EXPECT_NE(given("dpsgd", "noise-decay", "0.3").find("dpsgd-decay"), std::string::npos);
  const TemporaryFolder folder;
  const std::string file = folder / "run.toml";
  const auto from_file = [&](const std::string& line) {
    write_text(file, "preset = 'mnist-cnn'\n" + line + "\n");
    return flags({{"config", file.c_str()}});
  };
  EXPECT_NE(refusal([&] { resolved(from_file("dpis-floor = 0.1")); }).find("run.toml, line 2"),
            std::string::npos);
  // The default says nothing: a config that names every option is one of any method.
  EXPECT_EQ(resolved(from_file("dpis-floor = 0.01")).method, "dpsgd");
}

/// Every option belongs to all methods, or to some that the registry names.
TEST(Settings, OptionsOfMethodsAreThoseOfTheRegistry) {
  for (const MethodEntry& method : methods()) {
    EXPECT_EQ(find_method(method.name), &method);
    for (const Option& own : method.options) {
      ASSERT_NE(find_option(own.key), nullptr) << own.key;
      EXPECT_TRUE(takes(method, own.key)) << own.key;
    }
    for (const std::string& key : method.uses) {
      EXPECT_NE(find_option(key), nullptr) << method.name << " " << key;
      EXPECT_TRUE(takes(method, key)) << key;
    }
    EXPECT_TRUE(takes(method, "dataset") && takes(method, "delta")) << method.name;
  }
}

/// In --help and in config.toml.
TEST(Settings, AMethodsOptionIsListedBehindTheOneItBelongsWith) {
  std::vector<std::string> keys;
  for (const Option& o : train_options()) keys.push_back(o.key);
  const auto behind = std::ranges::find(keys, "poly-c") + 1;
  EXPECT_EQ(
      std::vector<std::string>(behind, behind + 4),
      (std::vector<std::string>{"adaptive-start", "adaptive-weight", "adaptive-least", "warmup"}));
  EXPECT_EQ(find_option("adaptive-least")->group, "Training");
}

TEST(Settings, EveryOptionHasAHelpText) {
  for (const Option& o : train_options()) {
    EXPECT_FALSE(o.help.empty()) << o.key;
    EXPECT_FALSE(o.group.empty()) << o.key;
    EXPECT_EQ(find_option(o.key), &o) << "key used twice: " << o.key;
    EXPECT_TRUE(o.instead_of.empty() || o.clear) << o.key;
  }
}

}  // namespace
}  // namespace cudp
