#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <system_error>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/busy.hpp"
#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/out_file.hpp"
#include "runtime/cli/scoring.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/results/prediction_writer.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kPredictExamples = R"(Examples:
  cudp predict runs/mine --dataset new_patients.csv --out predictions.csv
  cudp predict runs/mine/release --dataset new_patients.csv --threshold 0.1 --out predictions.csv
  zcat rows.csv.gz | cudp predict model.safetensors --dataset - --out - | head
)";

constexpr const char* kStandardOutput = "-";

struct PredictFlags {
  std::string model;
  std::string out;
  std::optional<double> threshold;
};

std::vector<Option> predict_options() {
  using namespace option_rows;
  std::vector<Option> options = {
      positional(text("model", "TEXT", &PredictFlags::model,
                      "run folder, its release folder, or a .safetensors file")),
      text("out", "FILE", &PredictFlags::out,
           "the CSV of predictions (- is the standard output), readable by its owner alone"),
      number("threshold", "T", &PredictFlags::threshold, kUnit,
             "of two classes: predict the second where its probability is at least this; the more "
             "probable one, if not given"),
  };
  std::vector<Option> shared = scoring_options();
  options.insert(options.begin() + 1, std::make_move_iterator(shared.begin()),
                 std::make_move_iterator(shared.end()));
  return options;
}

/// Output for stdout that is collected in a temporary file and printed only when it is complete.
/// Nothing is printed if a row turns out to be invalid.
class HeldOutput {
 public:
  HeldOutput() : file_(std::tmpfile(), &std::fclose) {
    if (file_ == nullptr) throw Error("cannot make a temporary file for the standard output");
  }
  void write(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size())
      throw Error("cannot write to the temporary file for the standard output");
  }
  void publish() {
    std::rewind(file_.get());
    std::string part(std::size_t{1} << 16, '\0');
    for (;;) {
      const std::size_t n = std::fread(part.data(), 1, part.size(), file_.get());
      if (n == 0) break;
      std::cout.write(part.data(), static_cast<std::streamsize>(n));
    }
    if (std::ferror(file_.get()) != 0) throw Error("cannot read the temporary file back");
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// Computes the predictions of all rows and writes them to `out`. The caller must then call
/// out.publish(), which prints the output or moves the file to its path. Returns the number of
/// predictions.
template <class Output>
std::uint64_t write_all(Scorer& scorer, PredictionWriter& writer, Output& out) {
  std::uint64_t rows = 0;
  out.write(writer.header());
  ScoredBlock block;
  while (scorer.next(block)) {
    out.write(writer.lines(block, scorer.data_name()));
    rows += block.predictions.labels.size();
  }
  return rows;
}

void check_apart(const fs::path& out, const std::string& dataset) {
  std::error_code ignored;
  if (fs::exists(out, ignored) && fs::exists(dataset, ignored) &&
      fs::equivalent(out, dataset, ignored))
    throw InputError("--out " + out.string() + ": expected another file than --dataset, found it");
  if (fs::exists(out, ignored) && !fs::is_regular_file(out, ignored))
    throw InputError("--out " + out.string() + ": expected a file, found something else");
}

int predict(const TrainConfig& config) {
  const PredictFlags& flags = config.of<PredictFlags>();
  if (config.dataset.empty() || flags.out.empty())
    throw InputError(std::string("predict: expected ") +
                     (config.dataset.empty() ? "--dataset FILE" : "") +
                     (config.dataset.empty() && flags.out.empty() ? " and " : "") +
                     (flags.out.empty() ? "--out FILE" : "") + ", found none");
  const bool to_stdout = flags.out == kStandardOutput;
  if (!to_stdout) check_apart(flags.out, config.dataset);
  if (!to_stdout) check_out_folder(flags.out);
  const ReleasedModel model = model_for(config, flags.model);
  Reporter reporter(false);
  const Backend backend =
      choose_backend(config.device, [&](const std::string& s) { reporter.info(s); });
  ScoringRequest request = scoring_request(config);
  request.labels = false;
  request.ids = true;
  std::optional<Busy> scoring(std::in_place, scoring_text(config.dataset), reporter.shown_work());
  request.data.progress = &*scoring;
  Scorer scorer(model, flags.model, request, backend, reporter);
  PredictionWriter writer({.loss = model.network.spec.loss,
                           .outputs = model.network.outputs,
                           .classes = model.inputs.classes(),
                           .ids = scorer.has_ids(),
                           .threshold = flags.threshold,
                           .target = model.inputs.target().value_or(TargetBounds{})},
                          request.threads);
  if (to_stdout) {
    HeldOutput out;
    write_all(scorer, writer, out);
    scoring.reset();
    out.publish();
    return 0;
  }
  StagedFile out(flags.out, 0600);
  const std::uint64_t rows = write_all(scorer, writer, out);
  scoring.reset();
  out.publish();
  reporter.info(fmt::format("{}: {} predictions", flags.out, rows));
  return 0;
}

}  // namespace

void add_predict_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "predict",
               .description = "Predictions of a released model, as CSV",
               .examples = kPredictExamples,
               .options = predict_options(),
               .run = [](const TrainConfig& c) { return predict(c); }});
}

}  // namespace cudp
