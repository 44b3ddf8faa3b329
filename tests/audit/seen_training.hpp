#pragma once
// The trainings of non_interference_test.cpp and refusals_test.cpp, and all that others may see of
// one: what it leaves, says and ends with.
#include <filesystem>
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/audit/neighbours.hpp"
#include "tests/audit/non_interference_cases.hpp"
#include "tests/support/arguments.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp::neighbours {

/// How a training is made and ended: processes one after the other, the first begins it.
struct Way {
  const char* name;
  std::vector<Ending> endings;  ///< of each process
};

/// What others may see of a training.
struct Seen {
  std::vector<int> exits;
  std::string out;
  std::string err;
  std::map<std::string, std::string> files;  ///< of release/; names alone of the others
};

/// Without what the clock says: times, speeds, and the lines of progress, which come by the clock.
inline std::string without_clock(const std::string& text) {
  static const std::regex kTime(R"(\d\d:\d\d:\d\d )");
  static const std::regex kSpeed(R"(\n?time  .*)");
  static const std::regex kProgress(R"(.*epoch .*\[[=> ]*\].*\n)");
  return std::regex_replace(std::regex_replace(std::regex_replace(text, kProgress, ""), kSpeed, ""),
                            kTime, "");
}

inline const std::vector<std::string> kResume = {"train", "--resume", "run"};

class SeenTraining {
 public:
  SeenTraining(const Case& c, const Way& way) : case_(c), way_(way) {}

  /// The folder that a training runs in, with data.
  fs::path work() const { return folder_.path() / "work"; }

  /// Large files are written only for trainings that read them.
  void write_data(const Rows& rows, const Images& all) const {
    const fs::path work = this->work();
    fs::create_directories(work);
    write_text(work / "people.csv.schema.toml", kSchema);
    const bool texts = case_.kind == Kind::texts;
    write_text(work / "people.csv", text_of(texts ? table() : rows));
    if (case_.kind == Kind::matrix) write_text(work / "people.npz", matrix_of(rows));
    if (case_.kind == Kind::target_array) write_text(work / "targets.npz", targets_of(rows));
    write_text(work / "visits.csv.schema.toml", kUnitSchema);
    if (case_.kind == Kind::units)
      write_text(work / "visits.csv", visits.empty() ? visits_of(rows) : visits);
    write_text(work / "notes.csv.schema.toml", kTextSchema);
    write_text(work / "notes.csv", text_of(texts ? rows : notes(), true));
    if (texts) {
      std::string words;
      for (const char* word : kWords) words += std::string(word) + "\n";
      write_text(work / "words.txt", words);
      write_text(work / "vectors.txt", vectors());
    }
    write_text(work / "tanh.toml", kNormAfterTanh);
    write_text(work / "test.csv", text_of(test_rows));
    if (case_.kind == Kind::image_array) write_text(work / "digits.npz", image_array_of(all));
    if (case_.kind != Kind::images) return;
    write_images(work / "images", "train", all);
    Images few = images();
    few.pixels.resize(20);
    few.labels.resize(20);
    write_images(work / "images", "t10k", few);
  }

  Seen on(const Rows& rows, const Images& all, bool replays) {
    const fs::path work = this->work();
    fs::remove_all(work);
    write_data(rows, all);
    Seen seen;
    for (std::size_t i = 0; i < way_.endings.size(); ++i) {
      const Ended ended = run_observed(work, i == 0 ? first() : kResume, [&]() -> ReleaseObserver* {
        if (!replays) return new RecordingObserver(folder_ / "values", way_.endings[i]);
        return new ReplayingObserver(folder_ / "values", folder_ / "position",
                                     folder_ / "differences", way_.endings[i]);
      });
      seen.exits.push_back(ended.exit);
      seen.out += without_clock(ended.out);
      seen.err += without_clock(ended.err);
    }
    for (const auto& entry : fs::recursive_directory_iterator(work)) {
      const std::string name = fs::relative(entry.path(), work).string();
      if (!entry.is_regular_file() || !name.starts_with("run/")) continue;
      seen.files[name] = name.starts_with("run/release/") ? content_of(entry.path()) : "";
    }
    return seen;
  }

  Rows test_rows = first_rows(50);
  std::string visits;  ///< the file of visits, where it is not what the rows make it

  static Rows first_rows(std::size_t count) {
    Rows rows = table();
    rows.resize(count);
    return rows;
  }

  std::string position() const { return folder_ / "position"; }
  std::string differences() const { return content_of(folder_ / "differences"); }
  bool all_replayed() const {
    return content_of(folder_ / "position") == std::to_string(fs::file_size(folder_ / "values"));
  }

 private:
  static std::string text_of(const Rows& rows, bool texts = false) {
    std::string text = texts ? "note,ill\n" : "age,hours,kind,ill\n";
    for (const std::string& row : rows) text += row + "\n";
    return text;
  }

  std::vector<std::string> first() const {
    return with({"train", "--dataset", kDataOf[static_cast<int>(case_.kind)], "--epsilon", "3",
                 "--delta", "1e-5", "--seed", "7", "--threads", "1", "--out", "run",
                 "--checkpoint-every", "2", "--feature-cache", "none"},
                case_.flags);
  }

  TemporaryFolder folder_;
  const Case& case_;
  const Way& way_;
};

}  // namespace cudp::neighbours
