#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include <spdlog/fmt/fmt.h>

#include "runtime/base/error.hpp"
#include "runtime/base/files.hpp"
#include "runtime/base/reporter.hpp"
#include "runtime/cli/command_flags.hpp"
#include "runtime/cli/commands.hpp"
#include "runtime/cli/out_file.hpp"
#include "runtime/cli/scoring.hpp"
#include "runtime/config/option_rows.hpp"
#include "runtime/export/note.hpp"
#include "runtime/export/onnx.hpp"
#include "runtime/export/python.hpp"
#include "runtime/run/folder.hpp"

namespace fs = std::filesystem;

namespace cudp {
namespace {

constexpr const char* kExportExamples = R"(Examples:
  cudp export runs/mine --to python --out scorer.py      # then: python3 scorer.py new_patients.csv
  cudp export runs/mine/release --to onnx --out mine.onnx
  cudp export model.safetensors --to python --out - | head
)";

constexpr const char* kExportToStdout = "-";

struct ExportFlags {
  std::string model;
  std::string to;
  std::string out;
};

std::vector<Option> export_options() {
  using namespace option_rows;
  return {
      positional(text("model", "TEXT", &ExportFlags::model,
                      "run folder, its release folder, or a .safetensors file")),
      one_of(
          text("to", "FORMAT", &ExportFlags::to,
               "python: one file that needs numpy alone, encodes rows and predicts as cudp does; "
               "onnx: the layers, for other programs"),
          {"python", "onnx"}),
      text(
          "out", "FILE", &ExportFlags::out,
          "file to write (- is the standard output); scorer.py or model.onnx, which must not exist "
          "yet, if not given"),
      shared_option("data-dir", "folder with the files of word vectors"),
      shared_option(
          "embedding",
          "file of word vectors that the model was trained with; searched for in --data-dir if "
          "not given"),
  };
}

fs::path export_place(const ExportFlags& flags) {
  fs::path out = !flags.out.empty()     ? fs::path(flags.out)
                 : flags.to == "python" ? "scorer.py"
                                        : "model.onnx";
  std::error_code ignored;
  if (flags.out.empty() && fs::exists(out, ignored))
    throw InputError(out.string() +
                     ": expected a name that no file has yet, found one; --out FILE names another");
  if (fs::exists(out, ignored) && !fs::is_regular_file(out, ignored))
    throw InputError("--out " + out.string() + ": expected a file, found something else");
  check_out_folder(out);
  return out;
}

int export_model(const TrainConfig& config) {
  const ExportFlags& flags = config.of<ExportFlags>();
  if (flags.to.empty()) throw InputError("export: expected --to python or --to onnx, found none");
  const bool to_stdout = flags.out == kExportToStdout;
  const fs::path out = to_stdout ? fs::path() : export_place(flags);
  check_not_of_tuning(flags.model);
  const ExportNote note = export_note(find_released_model(flags.model));
  const ReleasedModel model = model_for(config, flags.model);
  const std::string content = flags.to == "python" ? python_scorer(model, note, flags.model)
                                                   : onnx_model(model, note, flags.model);
  Reporter reporter(false);
  for (const std::string& reason : note.not_for_release)
    reporter.warn("NOT for release: " + reason);
  if (to_stdout) {
    std::cout << content;
    return 0;
  }
  write_atomically(out, content, note.not_for_release.empty() ? 0644 : 0600);
  reporter.info(fmt::format("{}: {} bytes", out.string(), content.size()));
  return 0;
}

}  // namespace

void add_export_command(CLI::App& app, CommandBody& body) {
  add_command(app, body,
              {.name = "export",
               .description = "A released model for use without cudp: Python with numpy, or ONNX",
               .examples = kExportExamples,
               .options = export_options(),
               .run = [](const TrainConfig& c) { return export_model(c); }});
}

}  // namespace cudp
