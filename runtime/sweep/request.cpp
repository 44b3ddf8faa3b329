#include "runtime/sweep/request.hpp"

#include <algorithm>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/methods/registry.hpp"
#include "runtime/settings/options.hpp"
#include "runtime/settings/synonyms.hpp"
#include "runtime/settings/toml_values.hpp"

namespace cudp {
namespace {

/// Maximum number of runs of a sweep: combinations of settings times repeats.
constexpr std::size_t kMaxRuns = 100000;

Value entry_value(const toml::node& node, const std::string& place) {
  return toml_value(node, place, "a value or a list of values");
}

/// Throws InputError if a settings file or a preset sets a path to which all runs of the sweep
/// would write. (A sweep has no flags for such paths: swept_option() returns null for these
/// settings.)
void check_shared_files(const TrainConfig& config) {
  for (const char* const key : {"metrics-file", "tensorboard"}) {
    const auto value = find_option(key)->get(config);
    if (value && *value != Value(std::string()))
      throw InputError(fmt::format(
          "{}: expected none in the file of --config, since several trainings would share it, and "
          "show those that are not released, found {}",
          key, value_text(*value)));
  }
}

std::string text_of(const Value& value) {
  if (const auto* x = std::get_if<double>(&value)) return number_text(*x);  // 1, not 1.0
  const auto* text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : value_text(value);
}

}  // namespace

const std::vector<Option>& sweep_options() {
  using namespace option_rows;
  static const std::vector<Option> all = {
      optional_positional(text("file", "SWEEP.toml", &SweepFlags::file,
                               "File with settings, lists of them, and the keys of these flags")),
      integer("repeats", "N", &SweepFlags::repeats, kCount,
              "Runs of each combination of settings, each with a key of its own"),
      integer("jobs", "N", &SweepFlags::jobs, kThreads,
              "Runs at a time, 0: one a core, or 8 on a CUDA device"),
      number("total-epsilon", "E", &SweepFlags::total_epsilon, kPositive,
             "Refuse the sweep if all its runs together may spend more"),
      number("total-delta", "D", &SweepFlags::total_delta, kInsideUnit,
             "Delta of all runs together; the runs' own if not given, or their sum if numbers of "
             "examples are private"),
      text("share", "K/N", &SweepFlags::share,
           "Make every N-th run only, from the K-th on: a task of an array of jobs"),
      text("out", "DIR", &SweepFlags::out,
           "Folder of the sweep; the same command continues it. runs/sweep-TIME if not given"),
      text("resume", "DIR", &SweepFlags::resume, "Continue the sweep in DIR"),
  };
  return all;
}

const Option* swept_option(std::string_view key) {
  const Option* const option = find_option(key);
  if (option == nullptr || (option->scope == Scope::command && key != "config")) return nullptr;
  // metrics-file: runs at the same time would write to the same file. tuned: it has no effect on a
  // run.
  if (key == "metrics-file" || key == "tuned") return nullptr;
  return option;
}

void check_distinct(const std::vector<Setting>& values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (values[i].value == values[k].value)
        throw InputError(values[i].place + ": expected each value once (--repeats trains " +
                         "several times), found " + value_text(values[i].value) + " twice");
}

std::vector<Setting> parse_values(const Option& option, const std::vector<std::string>& texts,
                                  const std::string& place) {
  std::vector<Setting> values;
  const bool holds_commas = option.value_name.find(',') != std::string::npos;
  for (const std::string& text : texts) {
    std::size_t at = 0;
    for (bool more = true; more;) {
      const std::size_t end = holds_commas ? std::string::npos : text.find(',', at);
      more = end != std::string::npos;
      values.push_back({parse_value(option, text.substr(at, more ? end - at : end), place), place});
      at = end + 1;
    }
  }
  check_distinct(values);
  return values;
}

void add_lists_file(std::string_view toml, const std::string& source, const ListCommand& command,
                    const Settings& given, TrainConfig& own, SettingLists& lists) {
  const toml::table table = parse_toml(toml, source);
  for (const auto& [name, node] : table) {
    const std::string key(name.str());
    const std::string place = line_of(node, source) + ", " + key;
    const Option* const option = find_option(command.options, key);
    if (option != nullptr &&
        std::ranges::find(command.only_flags, key) == command.only_flags.end()) {
      if (!given.contains(key)) option->set(own, entry_value(node, place), place);
      continue;
    }
    if (node.is_table() && find_method(key) != nullptr)
      throw InputError(place +
                       ": expected settings of a single method in a file that config = "
                       "\"FILE\" names, found them here");
    if (swept_option(key) == nullptr) {
      if (find_option(key) != nullptr || option != nullptr)
        throw InputError(fmt::format(
            "{}: expected on the command line of a single run or of the {}, found in a {}'s file",
            place, command.name, command.name));
      throw InputError(
          fmt::format("{}: expected a known key, found '{}'; {}", place, key,
                      nearest_or_all(key, option_keys(), option_synonyms(),
                                     fmt::format("cudp {} --help-all lists them", command.name))));
    }
    if (lists.contains(key)) continue;  // the command line sets it
    std::vector<Setting> values;
    if (const toml::array* const list = node.as_array()) {
      for (const toml::node& entry : *list) values.push_back({entry_value(entry, place), place});
      if (values.empty()) throw InputError(place + ": expected at least one value, found none");
    } else {
      values.push_back({entry_value(node, place), place});
    }
    check_distinct(values);
    lists[key] = std::move(values);
  }
}

void add_sweep_file(std::string_view toml, const std::string& source, const Settings& given,
                    SweepRequest& request) {
  add_lists_file(toml, source,
                 {.name = "sweep",
                  .options = sweep_options(),
                  .only_flags = {"file", "out", "resume", "share"}},
                 given, request);
}

std::string lists_text(const SettingLists& lists) {
  std::string text;
  for (const auto& [key, values] : lists) {
    text += key + " = ";
    if (values.size() > 1) text += '[';
    for (std::size_t i = 0; i < values.size(); ++i)
      text += (i > 0 ? ", " : "") + value_text(values[i].value);
    text += values.size() > 1 ? "]\n" : "\n";
  }
  return text;
}

std::string sweep_text(const SweepRequest& request) {
  return fmt::format("repeats = {}\n", request.flags.repeats) + lists_text(request.lists);
}

std::string varied_text(const SweepCell& cell) {
  std::string text;
  for (const auto& [key, value] : cell.varied)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, value);
  return text;
}

std::vector<SweepCell> combinations_of(const SettingLists& lists, std::int64_t repeats) {
  std::vector<SweepCell> cells(1);
  for (const Option& option : train_options()) {
    const auto list = lists.find(option.key);
    if (list == lists.end()) continue;
    const std::vector<Setting>& values = list->second;
    if (cells.size() * values.size() * static_cast<std::size_t>(repeats) > kMaxRuns)
      throw InputError(fmt::format("sweep: expected at most {} runs, found more", kMaxRuns));
    std::vector<SweepCell> more;
    for (const SweepCell& cell : cells)
      for (const Setting& value : values) {
        more.push_back(cell);
        more.back().settings[option.key] = value;
        if (values.size() > 1) more.back().varied.emplace_back(option.key, text_of(value.value));
      }
    cells = std::move(more);
  }
  return cells;
}

void resolve_cells(std::vector<SweepCell>& cells, std::vector<std::string>& notes) {
  for (SweepCell& cell : cells) {
    std::vector<std::string> lines;
    try {
      cell.config = resolve_config(cell.settings, lines);
      check_shared_files(cell.config);
    } catch (const InputError& e) {
      if (cell.varied.empty()) throw;
      std::string where;
      for (const auto& [key, value] : cell.varied)
        where += fmt::format("{}{} = {}", where.empty() ? "" : ", ", key, value);
      throw InputError(std::string(e.what()) + " (the runs with " + where + ")");
    }
    // Keeps only the lines that are the same for all cells. Other lines are about settings of a
    // single cell.
    if (&cell == &cells.front())
      notes = std::move(lines);
    else
      std::erase_if(notes, [&](const std::string& line) {
        return std::ranges::find(lines, line) == lines.end();
      });
  }
}

std::vector<SweepCell> cells_of(const SweepRequest& request, std::vector<std::string>& notes) {
  std::vector<SweepCell> cells = combinations_of(request.lists, request.flags.repeats);
  resolve_cells(cells, notes);
  for (const SweepCell& cell : cells)
    if (cell.config.seed && request.flags.repeats > 1)
      throw InputError(fmt::format(
          "--repeats: expected 1 with --seed, since runs of one seed are the same, found {}",
          request.flags.repeats));
  return cells;
}

}  // namespace cudp
