// Settings that nobody would think of together: made by machine from the table of options, trained
// on small data to one of several ends. What is refused is refused in one line and leaves nothing;
// a crash, a hang or exit code 1 is a fault, and so is whatever the checker (privacy/verify) finds
// between the run's transcript, its ledger and its certificate. A case that fails is printed as the
// shortest command that fails in the same way.
#include "tests/support/random_settings.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "privacy/verify/checker.hpp"
#include "runtime/audit/released_run.hpp"
#include "runtime/base/safetensors.hpp"
#include "runtime/base/threads.hpp"
#include "runtime/config/seeded_key.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/gate/transcript.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/npy_files.hpp"
#include "tests/support/recomputed_sums.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kLongest = 120;  // seconds of a process
constexpr int kRows = 120;

SeededKey proof_of_seed() {
  TrainConfig config;
  config.seed = 1;
  return SeededKey(config);
}

/// Writes the run down, and ends the process when the n-th noisy sum leaves.
class EndingTranscript : public Transcript {
 public:
  EndingTranscript(int file, Ending ending) : Transcript(proof_of_seed(), file), ending_(ending) {}
  void leaves(const Leaving& what, std::span<std::byte> values) override {
    Transcript::leaves(what, values);
    if (what.purpose == Stream::noise && ++steps_ == ending_.at) ::raise(ending_.signal);
  }

 private:
  Ending ending_;
  std::size_t steps_ = 0;
};

constexpr const char* kWords[] = {"a", "cold", "pain", "no", "better", "worse", "day", "night"};

std::string table_of(std::uint64_t seed, int rows) {
  std::mt19937_64 random(seed);
  std::string text = "age,hours,kind,ill\n";
  for (int i = 0; i < rows; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += fmt::format("{},{},{},{}\n", age, hours, "abc"[random() % 3],
                        age + hours > 80 ? "yes" : "no");
  }
  return text;
}

/// The same columns, in visits of patients: five rows each, one behind the other.
constexpr int kVisits = 5;
std::string visit(int row, const std::string& cells) {
  return fmt::format("p{},{}", row / kVisits, cells);
}
std::string visits_of(std::uint64_t seed, int rows) {
  std::istringstream all(table_of(seed, rows));
  std::string text;
  int row = -1;
  for (std::string line; std::getline(all, line); ++row)
    text += (row < 0 ? "who," + line : visit(row, line)) + "\n";
  return text;
}

/// The same columns with a number to predict.
std::string stays_of(std::uint64_t seed, int rows) {
  std::mt19937_64 random(seed);
  std::string text = "age,hours,kind,days\n";
  for (int i = 0; i < rows; ++i) {
    const auto age = 17 + random() % 74;
    const auto hours = random() % 41;
    text += fmt::format("{},{},{},{}\n", age, hours, "abc"[random() % 3],
                        (age + hours) / 4 + random() % 9);
  }
  return text;
}

/// Features [rows, 5] of a matrix, a gap of zeros among them, and their labels.
struct Matrix {
  std::vector<float> features;
  std::vector<std::int64_t> labels;

  std::string x() const { return npy_floats(labels.size(), features); }
  std::string y() const { return npy_labels(labels); }
};

Matrix matrix_of(std::uint64_t seed, int rows) {
  std::mt19937_64 random(seed);
  Matrix m;
  for (int i = 0; i < rows; ++i) {
    const auto label = static_cast<std::int64_t>(random() % 2);
    for (int k = 0; k < 5; ++k)
      m.features.push_back(i == 5 ? 0.0f
                                  : static_cast<float>(random() % 200) / 100.0f - 1.0f +
                                        (k == 0 ? static_cast<float>(label) : 0.0f));
    m.labels.push_back(label);
  }
  return m;
}

std::string notes_of(std::uint64_t seed, int rows) {
  std::mt19937_64 random(seed);
  std::string text = "note,ill\n";
  for (int i = 0; i < rows; ++i) {
    for (std::uint64_t n = random() % 12; n > 0; --n)
      text += std::string(kWords[random() % std::size(kWords)]) + " ";
    text += random() % 2 == 0 ? ",no\n" : ",yes\n";
  }
  return text;
}

void write_images(const fs::path& folder, const std::string& part, std::uint64_t seed, int count) {
  const auto big_endian = [](std::uint32_t n) {
    return std::string{static_cast<char>(n >> 24), static_cast<char>(n >> 16),
                       static_cast<char>(n >> 8), static_cast<char>(n)};
  };
  std::mt19937_64 random(seed);
  const auto n = static_cast<std::uint32_t>(count);
  std::string pixels = big_endian(0x803) + big_endian(n) + big_endian(28) + big_endian(28);
  std::string labels = big_endian(0x801) + big_endian(n);
  for (int i = 0; i < count; ++i) {
    labels += static_cast<char>(random() % 10);
    for (int p = 0; p < 784; ++p) pixels += static_cast<char>(random() % 256);
  }
  fs::create_directories(folder);
  write_text(folder / (part + "-images-idx3-ubyte"), pixels);
  write_text(folder / (part + "-labels-idx1-ubyte"), labels);
}

std::string text_model(const char* layer) {
  return std::string(R"(name = "notes"
loss = "cross_entropy"
activation = "tanh"
layers = [
  { type = "embedding", name = "words", trainable = true, columns = 6 },
  )") + layer +
         R"(
  { type = "activation" },
  { type = "dense", name = "fc", out = "outputs" },
]
)";
}

void write_data(const fs::path& work) {
  fs::create_directories(work);
  write_text(work / "people.csv", table_of(1, kRows));
  write_text(work / "test.csv", table_of(2, 30));
  write_text(work / "people.csv.schema.toml", R"(name = "people"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"]},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)");
  // As many rows are used.
  write_text(work / "visits.csv", visits_of(1, kRows / 3 * kVisits));
  write_text(work / "visits.csv.schema.toml", R"(name = "visits"
unit = "who"
max_rows = 3
columns = [
  {name = "who", kind = "ignore"},
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"]},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)");
  write_text(work / "stays.csv", stays_of(1, kRows));
  write_text(work / "stays-test.csv", stays_of(2, 30));
  write_text(work / "stays.csv.schema.toml", R"(name = "stays"
columns = [
  {name = "age", kind = "numeric", min = 17, max = 90, fill = 40},
  {name = "hours", kind = "numeric", min = 0, max = 40, fill = 20},
  {name = "kind", kind = "categorical", values = ["a", "b", "c"]},
  {name = "days", kind = "target", min = 0, max = 30, fill = 10},
]
)");
  const Matrix people = matrix_of(7, kRows), test = matrix_of(8, 30);
  write_text(work / "people.npy", people.x());
  write_text(work / "labels.npy", people.y());
  write_text(work / "people.npz", zip({{"x.npy", people.x()}, {"y.npy", people.y()}}));
  write_text(work / "test.npy", test.x());
  write_text(work / "test-labels.npy", test.y());
  write_text(work / "notes.csv", notes_of(3, kRows));
  write_text(work / "notes-test.csv", notes_of(4, 30));
  write_text(work / "notes.csv.schema.toml", R"(name = "notes"
columns = [
  {name = "note", kind = "text"},
  {name = "ill", kind = "label", values = ["no", "yes"], fill = "no"},
]
)");
  std::string words;
  std::string vectors;
  std::mt19937_64 random(5);
  for (const char* word : kWords) {
    words += std::string(word) + "\n";
    vectors += word;
    for (int i = 0; i < 6; ++i)
      vectors += fmt::format(" {:.3f}", std::uniform_real_distribution<>(-1.0, 1.0)(random));
    vectors += "\n";
  }
  write_text(work / "words.txt", words);
  TensorFile tensors;
  for (const char* name : {"a", "b"}) {
    const std::size_t size = 5 * std::size(kWords);
    tensors.tensors.push_back({.name = name,
                               .shape = {static_cast<int>(std::size(kWords)), 5},
                               .offset = tensors.values.size(),
                               .size = size});
    for (std::size_t i = 0; i < size; ++i)
      tensors.values.push_back(std::uniform_real_distribution<float>(-1.0f, 1.0f)(random));
  }
  write_text(work / "vectors.safetensors", encode_safetensors(tensors));
  write_text(work / "vectors.txt", vectors);
  write_images(work / "images", "train", 6, kRows);
  write_images(work / "images", "t10k", 7, 20);
  write_text(work / "text-gru.toml", text_model(R"({ type = "gru", name = "gru", hidden = 5 },)"));
  write_text(work / "text-lstm.toml",
             text_model(R"({ type = "lstm", name = "lstm", hidden = 4, bidirectional = true },)"));
  write_text(work / "text-mean.toml", text_model(R"({ type = "mean" },)"));
  write_text(work / "image.toml", R"(name = "image"
loss = "cross_entropy"
activation = "relu"
layers = [
  { type = "conv2d", name = "conv1", out = 6, kernel = 5, stride = 3, pad = 1 },
  { type = "groupnorm", name = "norm1", groups = 3 },
  { type = "activation" },
  { type = "avgpool", kernel = 2, stride = 2 },
  { type = "dense", name = "fc", out = "outputs" },
]
)");
  write_text(work / "table.toml", R"(name = "table"
loss = "cross_entropy"
activation = "tanh"
layers = [
  { type = "dense", name = "fc1", out = 7 },
  { type = "activation" },
  { type = "dense", name = "fc2", out = "outputs" },
]
)");
}

/// What became of a setting.
struct Outcome {
  bool accepted = false;
  std::string fault{};  ///< empty: none
  std::string detail{};
  Recomputed oracle{};
};

/// The lines that the program itself ends with.
int last_words(const std::string& err) {
  int lines = 0;
  std::istringstream all(err);
  for (std::string line; std::getline(all, line);) lines += line.starts_with("cudp: ") ? 1 : 0;
  return lines;
}

/// That a run ended in a refusal with the same words.
bool ended_alike(const Ended& a, const Ended& b) {
  const auto words = [](const Ended& e) {
    return e.err.substr(std::min(e.err.find("cudp: "), e.err.size()));
  };
  return a.exit == b.exit && words(a) == words(b);
}

bool is_refusal(const Ended& e) { return e.exit == 2 || e.exit == 3; }

/// Nothing, or the certificate of what had to be released to know.
std::string left_by_refusal(const fs::path& run, const std::string& err) {
  if (!fs::exists(run)) return "";
  const std::string text = content_of(run / "release/privacy.json");
  const auto certificate = nlohmann::json::parse(text, nullptr, false);
  const std::string status = certificate.is_object() ? certificate.value("status", "") : "";
  // dp-agd may find out in its first step.
  const bool in_a_step = err.find("the budget does not allow a single step") != std::string::npos;
  return status == "refused" || (in_a_step && status == "not finished")
             ? ""
             : "a refused run left a folder";
}

/// A run that ended leaves a certificate, a model and no key.
std::string left_by_end(const fs::path& run) {
  if (fs::exists(run / "release/NO-PRIVACY.txt")) return "";
  const auto certificate =
      nlohmann::json::parse(content_of(run / "release/privacy.json"), nullptr, false);
  if (!certificate.is_object() || certificate.value("status", "") != "finished")
    return "a finished run has no certificate that says so";
  if (!fs::exists(run / "release/model.safetensors")) return "a finished run has no model";
  if (certificate.value("max_rows", 1) > 1 && certificate.contains("training_examples") &&
      certificate["training_examples"] != kRows)
    return "a unit has other rows than its first ones";
  for (const auto& entry : fs::directory_iterator(run / "private")) {
    const std::string name = entry.path().filename();
    if (name == "key" || name.starts_with("checkpoint-")) return "a finished run kept " + name;
  }
  return "";
}

/// What the checker finds, cudp verify, or the oracle; empty where nothing speaks against the
/// certificate.
std::string convicted(const fs::path& run, const std::string& transcript, Recomputed& oracle) {
  if (fs::exists(run / "release/NO-PRIVACY.txt")) return "";
  const verify::Verdict verdict =
      verify::check({.certificate = content_of(run / "release/privacy.json"),
                     .ledger = content_of(run / "private/ledger"),
                     .transcript = transcript,
                     .settings = content_of(run / "release/config.toml")});
  if (!verdict.findings.empty())
    return verdict.findings.front().rule + ": " + verdict.findings.front().what;
  if (fs::exists(run / "release/model.safetensors"))
    for (const verify::Statement& s : hold(open_released_run(run)))
      if (!s.wrong.empty()) return "cudp verify: " + s.name + ": " + s.wrong.front();
  oracle = recompute_sums(run, transcript);
  return oracle.fault;
}

Outcome train(const RandomSettings& settings, const fs::path& work) {
  fs::remove_all(work / "run");
  write_text(work / RandomSettings::kFile, settings.file());
  const TranscriptMemory memory;
  const auto run = [&](const std::vector<std::string>& arguments, Ending ending) {
    return run_witnessed(work, arguments, [&memory, ending]() -> Witness* {
      ::alarm(kLongest);
      replace_cuda(&emulated_cuda());
      return new EndingTranscript(memory.file(), ending);
    });
  };
  const auto judged = [&](const Ended& e) {
    Outcome outcome{.accepted = true};
    std::string finding;
    try {
      finding = convicted(work / "run", memory.content(), outcome.oracle);
    } catch (const std::exception& error) {
      finding = std::string("evidence that nobody can read: ") + error.what();
    }
    if (!finding.empty()) {
      outcome.fault = finding.substr(0, finding.find(':'));
      outcome.detail = finding + "; " + e.err.substr(0, 200);
    }
    return outcome;
  };
  const auto fault = [](std::string what, const Ended& e) {
    return Outcome{true, std::move(what), fmt::format("exit {}: {}", e.exit, e.err.substr(0, 600))};
  };
  const std::map<std::string, std::vector<Ending>> ways = {
      {"finished", {{}}},
      {"interrupted", {{SIGINT, 2}, {}}},
      {"killed", {{SIGKILL, 3}, {SIGKILL, 1}, {}}},
      {"fresh noise", {{SIGKILL, 2}, {}}},
      {"killed in the fresh noise", {{SIGKILL, 2}, {SIGKILL, 2}, {}}}};
  const std::vector<Ending>& endings = ways.at(settings.ending);
  const bool fresh = settings.ending.ends_with("fresh noise");
  for (std::size_t i = 0; i < endings.size(); ++i) {
    std::vector<std::string> arguments = settings.arguments();
    if (i > 0) {
      arguments = {"train", "--resume", "run", "--quiet", "--json"};
      if (fresh && i == 1) arguments.emplace_back("--fresh-noise");
    }
    const Ended e = run(arguments, endings[i]);
    if (is_refusal(e)) {
      if (last_words(e.err) != 1) return fault("a refusal is not one line", e);
      if (i == 0) {
        const std::string left = left_by_refusal(work / "run", e.err);
        return left.empty() ? Outcome{} : fault(left, e);
      }
      // What was spent may leave nothing for another key.
      if (fresh && e.exit == 3) return judged(e);
      // A run that was killed goes on to the end that it would have had: dp-agd may find out in its
      // first step that the budget allows none.
      if (!fresh && e.exit == 3) {
        const Outcome outcome = judged(e);
        fs::remove_all(work / "run");
        if (ended_alike(run(settings.arguments(), {}), e)) return outcome;
      }
      return fault("a run cannot go on", e);
    }
    const bool interrupted = endings[i].signal == SIGINT && e.exit == 1 &&
                             e.err.find("interrupted at step") != std::string::npos;
    const bool killed = endings[i].signal == SIGKILL && e.exit == -SIGKILL;
    if (interrupted || killed) continue;
    // Without privacy no gradient is clipped: steps of 1e30 end here.
    if (e.exit == 1 && e.err.find("cudp: training diverged") != std::string::npos)
      return {.accepted = true};
    if (e.exit != 0) return fault(fmt::format("exit code {}", e.exit), e);
    if (const std::string left = left_by_end(work / "run"); !left.empty()) return fault(left, e);
    return judged(e);
  }
  return {true, "a run never ended", ""};
}

/// Leaves away what is not needed for the same fault.
RandomSettings shrink(RandomSettings settings, const std::string& fault, const fs::path& work) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::size_t i = 0; i < settings.flags.size(); ++i) {
      const std::string& key = settings.flags[i].first;
      if (key == "dataset" || key == "out" || key == "seed") continue;
      RandomSettings less = settings;
      less.flags.erase(less.flags.begin() + static_cast<std::ptrdiff_t>(i));
      if (key == "config") {  // what the file says becomes flags, to be left away one by one
        less.flags.insert(less.flags.end(), less.in_file.begin(), less.in_file.end());
        less.in_file.clear();
      }
      if (train(less, work).fault != fault) continue;
      settings = std::move(less);
      smaller = true;
      break;
    }
  }
  return settings;
}

int how_many() {
  const char* times = std::getenv("CUDP_SETTINGS");
  return times != nullptr ? std::atoi(times) : 400;
}

/// Which settings chance makes: CUDP_SETTINGS_SEED, or else the same ones each time.
std::uint64_t seed_or(std::uint64_t usual) {
  const char* seed = std::getenv("CUDP_SETTINGS_SEED");
  return seed != nullptr ? std::strtoull(seed, nullptr, 10) : usual;
}
constexpr std::uint64_t kSeed = 20'261'124;

/// scripts/faults.py asks whether a fault is found at all: the first finding ends the search, ...
bool ends_at_first_fault() { return std::getenv("CUDP_FIRST_FAULT") != nullptr; }

/// ... and looks among settings of one kind: CUDP_SETTINGS_WITH=KEY=VALUE, several with commas.
constexpr int kMostTries = 200'000;
bool wants_one_kind() { return std::getenv("CUDP_SETTINGS_WITH") != nullptr; }
bool is_wanted(const RandomSettings& settings) {
  const char* text = std::getenv("CUDP_SETTINGS_WITH");
  std::istringstream wanted(text != nullptr ? text : "");
  for (std::string part; std::getline(wanted, part, ',');) {
    const std::size_t at = part.find('=');
    const std::string key = part.substr(0, at);
    const std::string value = at == std::string::npos ? "" : part.substr(at + 1);
    if (!(key == "data"     ? settings.data == value
          : key == "ending" ? settings.ending == value
                            : settings.has(key, value)))  // "*": any value
      return false;
  }
  return true;
}

/// Every n-th setting from `first` on; writes what was covered, and faults, one a line.
void work_through(int first, int every, const fs::path& folder) {
  const fs::path work = folder / ("work" + std::to_string(first));
  const fs::path enough = folder / "enough";
  write_data(work);
  fs::current_path(work);  // where the settings' files are, for the oracle too
  std::ofstream out(folder / ("found" + std::to_string(first)));
  SettingsMaker maker(seed_or(kSeed));
  int number = 0;
  for (int i = 0; number < how_many() && i < kMostTries && !fs::exists(enough); ++i) {
    const RandomSettings settings = wants_one_kind() ? maker.any() : maker.next();
    if (!is_wanted(settings) || number++ % every != first) continue;
    const Outcome outcome = train(settings, work);
    if (!outcome.fault.empty()) {
      const RandomSettings least =
          ends_at_first_fault() ? settings : shrink(settings, outcome.fault, work);
      std::string detail = outcome.detail;
      std::ranges::replace(detail, '\n', ' ');
      out << "fault\t" << outcome.fault << "; " << detail << "; " << least.command() << "\n";
      if (ends_at_first_fault()) write_text(enough, "");
    } else {
      const Recomputed& o = outcome.oracle;
      out << (outcome.accepted ? "accepted" : "refused") << "\t" << i << " " << o.sums << " "
          << o.examples << " " << o.left_out << " " << o.longest << " " << o.error << "\n";
    }
    out.flush();
  }
}

/// Lets as many processes as there are cores, two at least, each do its part; returns how many.
int side_by_side(const std::function<void(int first, int every)>& part) {
  const int workers = std::max(2, available_cores());
  std::vector<pid_t> children;
  for (int w = 0; w < workers; ++w) {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 0;
      try {
        part(w, workers);
      } catch (const std::exception& error) {
        std::cerr << error.what() << std::endl;
        code = 1;
      }
      std::fflush(nullptr);
      ::_exit(code);  // never back into the tests
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  return workers;
}

/// What others may see of a training.
struct Seen {
  std::vector<int> exits;
  std::string out;
  std::string err;
  std::map<std::string, std::string> files;  ///< of release/; names alone of the others

  /// The first thing that differs; empty where nothing does.
  std::string difference(const Seen& other) const {
    if (exits != other.exits) return "exit codes";
    if (out != other.out) return "stdout: " + out + " / " + other.out;
    if (err != other.err) return "stderr: " + err + " / " + other.err;
    for (const auto& [name, content] : files)
      if (!other.files.contains(name) || other.files.at(name) != content) return name;
    return files.size() == other.files.size() ? "" : "more files";
  }
};

/// Without what the clock says.
std::string without_clock(const std::string& text) {
  static const std::regex kTime(R"(\d\d:\d\d:\d\d )");
  static const std::regex kSpeed(R"x("(seconds|examples_per_second)":[^,}]*)x");
  static const std::regex kProgress(R"(.*epoch .*\[[=> ]*\].*\n)");
  return std::regex_replace(std::regex_replace(std::regex_replace(text, kProgress, ""), kSpeed, ""),
                            kTime, "");
}

Seen look(const RandomSettings& settings, const fs::path& work,
          const std::function<Witness*(Ending)>& make_witness) {
  fs::remove_all(work / "run");
  write_text(work / RandomSettings::kFile, settings.file());
  Seen seen;
  const std::vector<Ending> endings = settings.ending == "finished" ? std::vector<Ending>{{}}
                                      : settings.ending == "interrupted"
                                          ? std::vector<Ending>{{SIGINT, 2}, {}}
                                          : std::vector<Ending>{{SIGKILL, 2}, {}};
  for (std::size_t i = 0; i < endings.size(); ++i) {
    std::vector<std::string> arguments = settings.arguments();
    if (i > 0) arguments = {"train", "--resume", "run", "--quiet", "--json"};
    if (i > 0 && settings.ending.ends_with("fresh noise")) arguments.emplace_back("--fresh-noise");
    const Ended e = run_witnessed(work, arguments, [&]() -> Witness* {
      ::alarm(kLongest);
      replace_cuda(&emulated_cuda());
      return make_witness(endings[i]);
    });
    seen.exits.push_back(e.exit);
    seen.out += without_clock(e.out);
    seen.err += without_clock(e.err);
    if (e.exit == 0 || is_refusal(e)) break;
  }
  if (!fs::exists(work / "run")) return seen;
  for (const auto& entry : fs::recursive_directory_iterator(work / "run")) {
    const std::string name = fs::relative(entry.path(), work / "run").string();
    if (entry.is_regular_file())
      seen.files[name] = name.starts_with("release/") ? content_of(entry.path()) : "";
  }
  return seen;
}

/// Line number `at` of a file's rows, behind the header, becomes `row`, or goes.
void change_row(const fs::path& file, int at, const std::string& row, bool remove) {
  std::istringstream all(content_of(file));
  std::string changed;
  int number = -1;
  for (std::string line; std::getline(all, line); ++number)
    if (number != at)
      changed += line + "\n";
    else if (!remove)
      changed += row + "\n";
  write_text(file, changed);
}

/// D' of D: one private row is another, or, where the size is private, none. Of units, all rows of
/// one.
void change_data(const fs::path& work, const RandomSettings& settings, int at) {
  const auto given = [&](const char* key) {
    const auto is_it = [&](const auto& f) { return f.first == key; };
    return std::ranges::any_of(settings.flags, is_it) ||
           std::ranges::any_of(settings.in_file, is_it);
  };
  const bool remove = !given("size-is-public") && at % 2 == 0;
  if (settings.data == "units") {
    const int first = at % (kRows / 3) * kVisits;
    for (int row = first + kVisits; row-- > first;)
      change_row(work / "visits.csv", row,
                 visit(first, row % 2 == 0 ? "1e300,-1e300,c,yes" : "17,0,a,yes"), remove);
  } else if (settings.data == "table") {
    const char* row = at % 3 == 0 ? "1e300,-1e300,c,yes" : "17,0,a,yes";
    if (settings.has("malformed", "missing") && at % 4 != 0)
      row = at % 3 == 0 ? "old,\"40\"h,d,maybe" : "17,0";
    change_row(work / "people.csv", at, row, remove);
  } else if (settings.data == "matrix") {
    Matrix m = matrix_of(7, kRows);
    const auto row = m.features.begin() + 5 * at;
    std::fill(row, row + 5, at % 3 == 0 ? 3e38f : 0.0f);
    m.labels[static_cast<std::size_t>(at)] = at % 2;
    if (remove) {
      m.features.erase(row, row + 5);
      m.labels.erase(m.labels.begin() + at);
    }
    write_text(work / "people.npy", m.x());
    write_text(work / "labels.npy", m.y());
    write_text(work / "people.npz", zip({{"x.npy", m.x()}, {"y.npy", m.y()}}));
  } else if (settings.data == "texts") {
    std::string note;
    for (int i = 0; i < 300; ++i) note += "worse strange ";
    change_row(work / "notes.csv", at, at % 3 == 0 ? ",yes" : note + ",no", remove);
  } else {
    const fs::path file = work / "images/train-images-idx3-ubyte";
    std::string pixels = content_of(file);
    pixels.replace(16 + 784 * static_cast<std::size_t>(at), 784, std::string(784, '\xff'));
    write_text(file, pixels);
  }
}

/// Runs that say what they should not are of no interest, and runs without privacy hide nothing.
bool hides_rows(const RandomSettings& settings) {
  const auto shows = [](const auto& f) {
    return f.first == "unsafe-diagnostics" || f.first == "accept-private-bounds" ||
           (f.first == "method" && f.second == "sgd");
  };
  return std::ranges::none_of(settings.flags, shows) &&
         std::ranges::none_of(settings.in_file, shows);
}

void compare_neighbours(int first, int every, const fs::path& folder) {
  const fs::path work = folder / ("work" + std::to_string(first));
  const std::string values = folder / ("values" + std::to_string(first));
  const std::string position = folder / ("position" + std::to_string(first));
  const std::string differences = folder / ("differences" + std::to_string(first));
  std::ofstream out(folder / ("found" + std::to_string(first)));
  const fs::path enough = folder / "enough";
  SettingsMaker maker(seed_or(11'242'026));
  int number = 0;
  for (int i = 0; number < how_many() / 4 && i < kMostTries && !fs::exists(enough); ++i) {
    const RandomSettings settings = wants_one_kind() ? maker.any() : maker.next();
    if (!is_wanted(settings) || number++ % every != first || !hides_rows(settings)) continue;
    for (const std::string& file : {values, position, differences}) fs::remove(file);
    write_data(work);
    const Seen expected =
        look(settings, work, [&](Ending ending) { return new RecordingWitness(values, ending); });
    if (!fs::exists(values)) continue;  // refused before anything left
    change_data(work, settings, i % kRows);
    const Seen seen = look(settings, work, [&](Ending ending) {
      return new ReplayingWitness(values, position, differences, ending);
    });
    std::string fault = expected.difference(seen);
    if (fs::exists(differences) && !content_of(differences).empty())
      fault = content_of(differences);
    std::ranges::replace(fault, '\n', ' ');
    out << (fault.empty() ? "same\t" : "fault\t") << fault << "; " << settings.command() << "\n";
    out.flush();
    if (!fault.empty() && ends_at_first_fault()) write_text(enough, "");
  }
}

/// As tests/audit/non_interference_test.cpp has it, for settings that nobody chose.
TEST(RandomSettings, OtherRowsShowInNothingThatLeaves) {
  const TemporaryFolder folder;
  const int workers =
      side_by_side([&](int first, int every) { compare_neighbours(first, every, folder.path()); });
  int same = 0;
  for (int w = 0; w < workers; ++w) {
    std::ifstream in(folder / ("found" + std::to_string(w)));
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with("fault\t")) ADD_FAILURE() << line.substr(6);
      same += line.starts_with("same\t") ? 1 : 0;
    }
  }
  std::cout << same << " pairs of neighbours, and nothing told them apart" << std::endl;
  if (ends_at_first_fault()) return;
  EXPECT_GT(same, how_many() / 16);
}

TEST(RandomSettings, TrainOrAreRefusedInOneLine) {
  const TemporaryFolder folder;
  const int workers =
      side_by_side([&](int first, int every) { work_through(first, every, folder.path()); });

  std::set<int> accepted;
  int refused = 0;
  Recomputed oracle;
  for (int w = 0; w < workers; ++w) {
    std::ifstream in(folder / ("found" + std::to_string(w)));
    for (std::string line; std::getline(in, line);) {
      const std::string kind = line.substr(0, line.find('\t'));
      const std::string rest = line.substr(line.find('\t') + 1);
      if (kind == "fault") ADD_FAILURE() << rest;
      refused += kind == "refused" ? 1 : 0;
      if (kind != "accepted") continue;
      int number = 0;
      Recomputed o;
      std::istringstream(rest) >> number >> o.sums >> o.examples >> o.left_out >> o.longest >>
          o.error;
      accepted.insert(number);
      oracle.sums += o.sums;
      oracle.examples += o.examples;
      oracle.left_out += o.left_out;
      oracle.longest = std::fmax(oracle.longest, o.longest);
      oracle.error = std::fmax(oracle.error, o.error);
    }
  }
  if (ends_at_first_fault()) {
    std::cout << "looked at " << accepted.size() << " trainings" << std::endl;
    return;
  }

  SettingsMaker maker(seed_or(kSeed));
  std::unordered_set<std::uint64_t> covered;
  std::set<std::string> reached;
  std::map<std::string, int> ways;
  for (int i = 0; i < how_many(); ++i) {
    const RandomSettings settings = maker.next();
    if (!accepted.contains(i)) continue;
    const std::vector<std::uint64_t> pairs = maker.pairs_of(settings);
    covered.insert(pairs.begin(), pairs.end());
    for (const auto* flags : {&settings.flags, &settings.in_file})
      for (const auto& [key, value] : *flags) reached.insert(key);
    if (settings.ending != "finished") reached.insert("resume");
    if (settings.ending.ends_with("fresh noise")) reached.insert("fresh-noise");
    ++ways[settings.ending];
    ++ways[settings.data];
    for (const char* key : {"rng", "device"})
      for (const std::string& value : find_option(key)->choices)
        if (settings.has(key, value)) ++ways[std::string(key) + " " + value];
    if (std::ranges::any_of(settings.flags, [](const auto& f) { return f.first == "threads"; }))
      ++ways["threads"];
  }
  std::string never;
  for (const Option& option : train_options())
    if (!reached.contains(option.key)) never += " " + option.key;
  std::cout << how_many() << " settings: " << accepted.size() << " trained, " << refused
            << " refused; of " << maker.seen() << " pairs of levels that settings can have "
            << maker.made() << " were made, " << covered.size()
            << " trained; options never trained:" << never << "\ntrained:";
  for (const auto& [way, count] : ways) std::cout << " " << way << " " << count << ",";
  std::cout << "\nthe oracle made " << oracle.sums << " sums again, of " << oracle.examples
            << " gradients, and left out " << oracle.left_out << "; the longest contribution is "
            << oracle.longest << " of the sensitivity, the largest distance " << oracle.error
            << " of what rounding may explain" << std::endl;
  // A preset is for published data, which a test has not; --compare-with asks for another run.
  if (how_many() >= 400) {
    EXPECT_EQ(never, " preset compare-with");
    for (const char* way :
         {"finished", "interrupted", "killed", "fresh noise", "killed in the fresh noise", "table",
          "units", "matrix", "texts", "images", "rng chacha20", "rng philox", "device cpu",
          "device cuda", "threads"})
      EXPECT_GT(ways[way], 3) << way;
  }
  EXPECT_GT(accepted.size(), static_cast<std::size_t>(how_many()) / 3);
  EXPECT_GT(oracle.sums, accepted.size());
  EXPECT_LE(oracle.longest, 1.0);
  EXPECT_GT(oracle.longest, 0.99);
}

/// What chance found once, each as the shortest settings that had the fault.
std::vector<RandomSettings> found_once() {
  return {
      // Where noise is large, the variance of a coordinate is a difference of squares that cancel.
      {.data = "images",
       .ending = "finished",
       .flags = {{"method", "adaclip"},
                 {"dataset", "images"},
                 {"epsilon", "0.5"},
                 {"delta", "1e-5"},
                 {"batch", "31"},
                 {"seed", "616"},
                 {"out", "run"}},
       .in_file = {}},
  };
}

TEST(RandomSettings, WhatWasFoundOnceHolds) {
  const TemporaryFolder folder;
  const auto number = [&](std::size_t i) { return folder / ("found" + std::to_string(i)); };
  side_by_side([&](int first, int every) {
    const fs::path work = folder / ("work" + std::to_string(first));
    write_data(work);
    fs::current_path(work);
    for (auto i = static_cast<std::size_t>(first); i < found_once().size();
         i += static_cast<std::size_t>(every)) {
      const Outcome outcome = train(found_once()[i], work);
      write_text(number(i), !outcome.fault.empty()     ? outcome.detail
                            : outcome.oracle.sums == 0 ? "the oracle made no sum again"
                                                       : "none");
    }
  });
  for (std::size_t i = 0; i < found_once().size(); ++i)
    EXPECT_EQ(content_of(number(i)), "none") << found_once()[i].command();
}

}  // namespace
}  // namespace cudp
