// Every command, flag, preset, method, model and data set that a document or a script names is one
// that the program has, and what is cheap of it runs.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/reproduce/command.hpp"
#include "runtime/base/error.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/settings/options.hpp"
#include "tests/support/cudp_process.hpp"
#include "tests/support/test_files.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

const Arguments kCommands = {"train",     "sweep",     "tune",  "schema",    "eval",
                             "predict",   "export",    "audit", "verify",    "account",
                             "calibrate", "reproduce", "info",  "completion"};

/// A command as it is written somewhere: the words behind "cudp".
struct Documented {
  std::string place;  ///< file and line
  Arguments words;
  bool is_whole = false;  ///< false: a mention in a sentence, which may lack something
};

std::string refusal(const Arguments& words) {
  static std::map<Arguments, std::string> known;
  const auto [at, is_new] = known.try_emplace(words);
  if (!is_new) return at->second;
  try {
    if (words.front() == "reproduce")
      check_command_line(words, add_reproductions);
    else
      check_command_line(words);
  } catch (const Error& e) {
    at->second = e.what();
  }
  return at->second;
}

bool is_flag(const std::string& word) { return word.starts_with("--"); }

/// NAME, DIR, N: the reader puts something in its place.
bool is_placeholder(const std::string& word) {
  static const std::regex kCapitals("[A-Z][A-Z_]*");
  return std::regex_match(word, kCapitals);
}

/// Puts values in the place of names in capitals, such as the program takes; what a shell would put
/// there is one of these too.
Arguments filled(const Arguments& words) {
  Arguments out;
  for (const std::string& word : words) {
    if (word.ends_with("...") || word.starts_with('[')) continue;
    if (out.empty()) {
      out.push_back(is_placeholder(word) ? "train" : word);
      continue;
    }
    const bool after_flag = out.size() > 1 && is_flag(out.back());
    if (!is_placeholder(word) && word.find('$') == std::string::npos) {
      out.push_back(word);
    } else if (after_flag) {
      const Arguments values = {"2", "1", "0.5", "mnist-cnn", "dpsgd", "cpu", "a.csv", "1e-5"};
      const auto fits = [&](const std::string& value) {
        return refusal({out[0], "RUN", out.back(), value}).empty() ||
               refusal({out[0], out.back(), value}).empty();
      };
      const auto value = std::ranges::find_if(values, fits);
      out.push_back(value != values.end() ? *value : word);
    } else {
      out.push_back(out[0] == "reproduce" ? "dpis-table3" : word);
    }
  }
  return out;
}

/// Why the program does not take it; empty: it does.
std::string fault_of(const Documented& d) {
  Arguments words = filled(d.words);
  std::string fault = refusal(words);
  if (d.is_whole || fault.empty()) return fault;
  if (fault.ends_with("found none")) {
    words.insert(words.begin() + 1, words[0] == "reproduce" ? "dpis-table3" : "RUN");
    fault = refusal(words);
  }
  const bool lacks =
      fault.ends_with("found none") || fault.find(" requires --") != std::string::npos;
  return lacks ? "" : fault;
}

Arguments split(const std::string& text) {
  std::istringstream in(text);
  Arguments words;
  for (std::string word; in >> word;) {
    std::erase_if(word, [](char c) { return c == '"' || c == '\''; });
    words.push_back(word);
  }
  return words;
}

/// The commands of a line that a shell runs, without what is a comment.
std::vector<std::string> shell_parts(const std::string& line) {
  std::vector<std::string> parts(1);
  char quote = '\0';
  for (const char c : line) {
    if (quote == '\0' && c == '#' && (parts.back().empty() || parts.back().back() == ' ')) break;
    if (c == '"' || c == '\'') quote = quote == '\0' ? c : quote == c ? '\0' : quote;
    if (quote == '\0' && std::string_view("|;&()").find(c) != std::string_view::npos)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

bool is_program(const std::string& word) {
  return word == "cudp" || word.ends_with("/cudp") || word == "${CUDP:-cudp}" || word == "$CUDP" ||
         word == "$cudp";
}

/// The words behind "cudp", or behind a script that gives its arguments to `cudp train`; nothing
/// where there are none. is_whole: false where a shell adds others.
struct Found {
  Arguments words;
  bool is_whole = true;
};
std::optional<Found> command_in(const std::string& part) {
  const Arguments all = split(part);
  static const std::regex kCommand("[a-z]+|COMMAND");
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool script =
        all[i].ends_with("scripts/train.sh") || all[i].ends_with("slurm/train.sbatch");
    if (!script && !is_program(all[i])) continue;
    if (!script && (i + 1 == all.size() || !std::regex_match(all[i + 1], kCommand)))
      return std::nullopt;
    Found found{script ? Arguments{"train"} : Arguments{}};
    for (++i; i < all.size(); ++i) {
      if (all[i].find_first_of("<>") != std::string::npos) break;
      const bool last = all[i].size() > 1 && all[i].ends_with(';');
      if (all[i] == "$@" || all[i].ends_with("[@]}"))
        found.is_whole = false;
      else
        found.words.push_back(last ? all[i].substr(0, all[i].size() - 1) : all[i]);
      if (last) break;
    }
    return found;
  }
  return std::nullopt;
}

class Documents {
 public:
  std::vector<Documented> commands;
  std::vector<Documented> flags;  ///< a flag, and perhaps its value, of some command

  void read_page(const fs::path& file) {
    each_line(file, [&, fenced = false, shell = false](const std::string& line) mutable {
      if (line.starts_with("```")) {
        fenced = !fenced;
        shell = line == "```" || line == "```sh" || line == "```bash" || line == "```console";
        return;
      }
      if (fenced && shell) {
        for (const std::string& part : shell_parts(line))
          if (const auto found = command_in(part)) add(found->words, found->is_whole);
      } else if (!fenced) {
        static const std::regex kInline("`([^`]+)`");
        for (std::sregex_iterator at(line.begin(), line.end(), kInline), end; at != end; ++at)
          read_mention((*at)[1]);
      }
    });
  }

  void read_script(const fs::path& file) {
    each_line(file, [&](const std::string& line) {
      const bool comment = line.starts_with('#');
      for (const std::string& part : shell_parts(comment ? line.substr(1) : line))
        if (const auto found = command_in(part);
            found && (!comment || std::ranges::count(kCommands, found->words.front()) > 0))
          add(found->words, found->is_whole && !comment);
      if (comment) read_flags(split(line), true);
    });
  }

  void read_help(const std::string& command, const std::string& text) {
    place_ = "cudp " + command + " --help";
    std::string joined;
    for (const std::string& line : lines_of(text)) {
      joined += line;
      if (joined.starts_with("  cudp ") && joined.ends_with('\\')) {
        joined.back() = ' ';
        continue;
      }
      const std::string whole = std::exchange(joined, "");
      if (!whole.starts_with("  cudp ")) continue;
      if (const auto found = command_in(shell_parts(whole).front())) add(found->words, true);
    }
  }

 private:
  template <class Use>
  void each_line(const fs::path& file, Use use) {
    std::string joined;
    int number = 0;
    for (const std::string& line : lines_of(content_of(file))) {
      ++number;
      joined += line;
      if (joined.ends_with('\\')) {
        joined.back() = ' ';
        continue;
      }
      place_ = file.filename().string() + ", line " + std::to_string(number);
      use(std::exchange(joined, ""));
    }
  }

  void add(Arguments words, bool is_whole) {
    commands.push_back({place_, std::move(words), is_whole});
  }

  void read_mention(const std::string& text) {
    const Arguments words = split(text);
    // "cudp checkpoint 9" is the name of a format.
    if (words.size() > 1 && words[0] == "cudp" && words[1] != "checkpoint" && words[1] != "privacy")
      add({words.begin() + 1, words.end()}, false);
    else if (!words.empty() && is_flag(words[0]))
      read_flags(words, false);
  }

  void read_flags(const Arguments& words, bool only_of_train) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      // `--at-` stands for all flags that begin so.
      if (!is_flag(words[i]) || words[i].ends_with('-')) continue;
      const std::string key = words[i].substr(2, words[i].find('=') - 2);
      if (only_of_train && find_option(key) == nullptr) continue;
      Arguments flag = {words[i]};
      while (i + 1 < words.size() && !is_flag(words[i + 1]) && flag.size() < 2)
        flag.push_back(words[++i]);
      flags.push_back({place_, flag});
    }
  }

  std::string place_;
};

fs::path root() {
  return fs::canonical(golden_file("published_deltas.json").parent_path() / "../..");
}

void read_folder(Documents& documents, const fs::path& folder, const std::string& ending) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ending) continue;
    if (ending == ".md")
      documents.read_page(entry.path());
    else
      documents.read_script(entry.path());
  }
}

Documents all_documents() {
  Documents documents;
  documents.read_page(root() / "README.md");
  for (const char* folder : {"bench", "kernels", "models", "privacy", "runtime", "tests"})
    read_folder(documents, root() / folder, ".md");
  for (const char* ending : {".sbatch", ".sh"}) read_folder(documents, root() / "scripts", ending);
  return documents;
}

/// Flags of other programs that documents mention.
bool is_of_others(const std::string& flag) {
  static const std::set<std::string> kOthers = {
      "--mpi",    "--prefix",   "--models",        "--batches",          "--cores",
      "--rounds", "--trainers", "--max-grad-norm", "--noise-multiplier", "--learning-rate"};
  return kOthers.contains(flag.substr(0, flag.find('=')));
}

TEST(DocumentedCommands, AreOnesThatTheProgramTakes) {
  Documents documents = all_documents();
  const TemporaryFolder folder;
  for (const std::string& command : kCommands)
    documents.read_help(command, run_cudp(folder, {command, "--help"}).out);
  EXPECT_GT(documents.commands.size(), 120u);
  for (const Documented& d : documents.commands)
    EXPECT_EQ(fault_of(d), "") << d.place << ": cudp " << testing::PrintToString(d.words);
}

TEST(DocumentedCommands, FlagsInSentencesAreThoseOfSomeCommand) {
  const Documents documents = all_documents();
  EXPECT_GT(documents.flags.size(), 100u);
  const TemporaryFolder folder;
  std::map<std::string, std::string> help;
  for (const std::string& command : kCommands) {
    const bool has_more = command == "train" || command == "audit";
    help[command] = run_cudp(folder, {command, has_more ? "--help-all" : "--help"}).out;
  }
  for (const Documented& d : documents.flags) {
    if (is_of_others(d.words.front())) continue;
    std::string first;
    const bool taken = std::ranges::any_of(kCommands, [&](const std::string& command) {
      const std::string flag = d.words.front().substr(0, d.words.front().find('='));
      if (help[command].find(flag) == std::string::npos) return false;
      Arguments words = {command};
      words.insert(words.end(), d.words.begin(), d.words.end());
      const std::string fault = fault_of({d.place, words});
      if (first.empty()) first = fault;
      return fault.empty();
    });
    EXPECT_TRUE(taken) << d.place << ": " << testing::PrintToString(d.words) << ": " << first;
  }
}

TEST(DocumentedCommands, AStaleNameIsFound) {
  const Arguments stale[] = {
      {"train", "--preset", "cifar10-cnn"},  {"train", "--dataset", "cifar10"},
      {"train", "--model", "resnet"},        {"train", "--method", "dpsgd-2"},
      {"train", "--epsilons", "3"},          {"train", "--batch", "many"},
      {"eval", "RUN", "--dataset", "minst"}, {"reproduce", "dpis-table4"},
      {"audit", "--canary", "bird"},         {"trian"},
      {"account", "--sigma", "-1"}};
  for (const Arguments& words : stale)
    EXPECT_NE(fault_of({"", words}), "") << testing::PrintToString(words);
  EXPECT_EQ(refusal({"train", "--preset", "mnist-cnn", "--data-dir", "none", "--config", "none"}),
            "");
}

TEST(DocumentedCommands, WhatIsCheapRuns) {
  const TemporaryFolder folder;
  Documents documents = all_documents();
  std::set<Arguments> seen;
  int runs = 0;
  for (const Documented& d : documents.commands) {
    const std::string& command = d.words.front();
    const auto has = [&](const char* word) { return std::ranges::count(d.words, word) > 0; };
    const bool asks_numbers = d.words.size() > 1 && is_flag(d.words[1]);
    const bool cheap = command == "info" || command == "schema" ||
                       ((command == "calibrate" || command == "account") && asks_numbers &&
                        !has("--groups") && !has("--phases"));
    if (!d.is_whole || !cheap || !seen.insert(d.words).second) continue;
    std::error_code none;
    if (const auto out = std::ranges::find(d.words, "--out"); out != d.words.end())
      fs::remove(folder / *(out + 1), none);
    if (command == "schema")
      write_text(folder / d.words[1], d.words[1].ends_with(".tsv")
                                          ? "age\tclass\n3\ta\n4\tb\n"
                                          : "patient_id,age,days,days_in_ward,died\n1,30,4,4,no\n");
    const Finished f = CudpProcess(folder, d.words, folder.path().string()).wait();
    EXPECT_EQ(f.exit, 0) << d.place << ": " << testing::PrintToString(d.words) << f.err;
    ++runs;
  }
  EXPECT_GE(runs, 5);
}

}  // namespace
}  // namespace cudp
