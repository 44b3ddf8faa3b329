#include "bench/reproduce/command.hpp"

#include <chrono>
#include <filesystem>
#include <iostream>

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include "bench/reproduce/reproduction.hpp"
#include "runtime/base/build_info.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/nearest.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/short_help.hpp"
#include "runtime/config/option_rows.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kReproduceExamples = R"(Examples:
  cudp reproduce dp-agd-fig2 --data-dir data --quick
  cudp reproduce dp-agd-fig2 --data-dir data --seeds 20 --out results
  cudp reproduce dpis-table3 --data-dir data --epsilons 0.5 1 2 3 4 --out results
)";

struct ReproduceFlags {
  std::string name;
  ReproduceOptions options;
  std::string out;
  bool redraw = false;
  bool json = false;
};

constexpr ValueRange kSeeds{.low = 0.0, .high = 1000.0, .text = "a whole number of 0 to 1000"};

std::vector<Option> reproduce_options() {
  using namespace option_rows;
  return {
      positional(text("name", "TEXT", &ReproduceFlags::name, "which table or figure")),
      shared_option("data-dir", "where the files of data sets are"),
      toggle("quick", &ReproduceOptions::quick, "a subset that fits 10 minutes on 2 cores"),
      integer("seeds", "N", &ReproduceOptions::seeds, kSeeds,
              "repetitions; 0: the table's own number"),
      list("epsilons", "E ...", &ReproduceOptions::epsilons, kAboveZero,
           "columns to run, where the table has more than it runs by itself"),
      shared_option("threads", "CPU threads, 0 for every core"),
      shared_option("out",
                    "folder for NAME.json, NAME.png and NAME.runs.jsonl, from which an "
                    "interrupted table goes on"),
      toggle("redraw", &ReproduceFlags::redraw,
             "run nothing: draw NAME.png again from the NAME.json in --out"),
      json_option(),
  };
}

ReproduceFlags reproduce_flags(const TrainConfig& c) {
  ReproduceFlags f = c.of<ReproduceFlags>();
  f.options = c.of<ReproduceOptions>();
  f.options.data_dir = c.data_dir;
  f.options.threads = static_cast<int>(c.threads);
  f.out = c.out;
  f.json = c.json;
  return f;
}

const Reproduction& named(const std::string& name) {
  std::vector<std::string> names;
  for (const Reproduction& r : reproductions()) {
    if (r.name == name) return r;
    names.push_back(r.name);
  }
  throw InputError("reproduce: expected a known table, found '" + name + "'; " +
                   nearest_or_all(name, names));
}

/// Draws the picture of a table that was made earlier.
int redraw(const std::string& name, const std::string& folder) {
  if (folder.empty()) throw InputError("--redraw: expected --out with it, found none");
  const fs::path file = fs::path(folder) / (name + ".json");
  const auto json = nlohmann::ordered_json::parse(read_file(file), nullptr, false);
  ReproducedTable table;
  try {
    table = table_from_json(json);
  } catch (const nlohmann::json::exception&) {
    throw InputError(file.string() + ": expected a table of cudp reproduce, found something else");
  }
  if (!draw_table(table, fs::path(folder) / (name + ".png")))
    throw Error("no picture: gnuplot is missing or failed");
  return 0;
}

int reproduce(const ReproduceFlags& f) {
  const Reproduction& wanted = named(f.name);
  if (!f.options.epsilons.empty() && !wanted.takes_epsilons)
    throw InputError("--epsilons: expected none with " + f.name + ", found some");
  if (f.redraw) return redraw(wanted.name, f.out);
  ReproduceOptions options = f.options;
  if (!f.out.empty()) {
    std::error_code failed;
    fs::create_directories(f.out, failed);
    if (failed)
      throw InputError("--out: expected a folder that can be made, found " + f.out + ": " +
                       failed.message());
    options.results_file = fs::path(f.out) / (wanted.name + ".runs.jsonl");
  }
  Reporter reporter(f.json);
  const auto start = std::chrono::steady_clock::now();
  const ReproducedTable table = wanted.run(options, reporter);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  nlohmann::ordered_json j = table_json(table);
  const BuildInfo build = build_info();
  j["reproduction"] = wanted.name;
  j["quick"] = f.options.quick;
  j["seconds"] = seconds;
  j["version"] = build.version;
  j["commit"] = build.commit;
  if (!f.out.empty()) {
    write_atomically(fs::path(f.out) / (wanted.name + ".json"), j.dump(2) + "\n");
    if (!draw_table(table, fs::path(f.out) / (wanted.name + ".png")))
      reporter.warn("no picture: gnuplot is missing or failed");
  }
  if (f.json)
    std::cout << j.dump(2) << "\n";
  else
    std::cout << fitting_text(table_text(table), STDOUT_FILENO)
              << fmt::format("{}\n", duration_text(seconds));
  return 0;
}

}  // namespace

void add_reproductions(CLI::App& app, CommandBody& body) {
  std::string names = "Tables and figures:\n";
  for (const Reproduction& r : reproductions()) names += "  " + r.name + "  " + r.what + "\n";
  add_command(app, body,
              {.name = "reproduce",
               .description = kReproduceDescription,
               .examples = names + kReproduceExamples,
               .options = reproduce_options(),
               .run = [](const TrainConfig& c) { return reproduce(reproduce_flags(c)); },
               .check = [](const TrainConfig& c) { (void)named(reproduce_flags(c).name); }});
}

}  // namespace cudp
