// What other rows show in settings that nobody would think of together: as
// non_interference_test.cpp has it for settings that somebody chose.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/device/backend.hpp"
#include "tests/audit/settings_search.hpp"
#include "tests/support/emulated_cuda.hpp"
#include "tests/support/random_settings.hpp"
#include "tests/support/replayed_run.hpp"
#include "tests/support/settings_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace cudp {
namespace {

namespace fs = std::filesystem;

using namespace settings_data;

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
          const std::function<ReleaseObserver*(Ending)>& make_release_observer) {
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
    const Ended e = run_observed(work, arguments, [&]() -> ReleaseObserver* {
      ::alarm(kLongest);
      replace_cuda(&emulated_cuda());
      return make_release_observer(endings[i]);
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
    const bool target = settings.has("dataset", "stays.csv");
    std::string row = at % 3 == 0 ? "1e300,-1e300,c," : "17,0,a,";
    row += !target ? "yes" : at % 3 == 0 ? "1e300" : "-1e-320";
    if (settings.has("malformed", "missing") && at % 4 != 0)
      row = at % 3 == 0 ? "old,\"40\"h,d,maybe" : "17,0";
    change_row(work / (target ? "stays.csv" : "people.csv"), at, row, remove);
  } else if (settings.data == "matrix") {
    SmallMatrix m = matrix_of(7, kRows);
    const auto row = m.features.begin() + std::ptrdiff_t{5} * at;
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
        look(settings, work, [&](Ending ending) { return new RecordingObserver(values, ending); });
    if (!fs::exists(values)) continue;  // refused before anything left
    change_data(work, settings, i % kRows);
    const Seen seen = look(settings, work, [&](Ending ending) {
      return new ReplayingObserver(values, position, differences, ending);
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

}  // namespace
}  // namespace cudp
