#include <cmath>

#include <nlohmann/json.hpp>
#include <spdlog/fmt/fmt.h>

#include "models/model.hpp"
#include "runtime/base/number_text.hpp"
#include "runtime/report/escape.hpp"
#include "runtime/report/pages.hpp"
#include "runtime/report/run_facts.hpp"
#include "runtime/report/sentences.hpp"
#include "runtime/report/summary.hpp"
#include "runtime/report/torch_code.hpp"
#include "runtime/results/model_inputs.hpp"

namespace cudp {
namespace {

using page::Block;
using page::Code;
using page::Paragraph;
using page::Section;

std::string meta(const ReportFiles& files, const char* key) {
  if (!files.model) return "";
  const auto found = files.model->metadata.find(key);
  return found == files.model->metadata.end() ? "" : found->second;
}

/// Returns sentences about the network's input: its shape, its meaning and its scale.
std::vector<std::string> input_of(const ReportFiles& files, const RunFacts& f) {
  std::vector<std::string> all;
  const std::string features = meta(files, "features");
  const std::string shape = "as float32 of shape [N, " + meta(files, "input") + "]";
  if (const auto pixels = read_inputs(*files.model, "model.safetensors").pixels) {
    const std::string numbers = fmt::format(
        "numbers x = {} * byte + {}, with bytes of 0 to 255{}", number_text(pixels->scale),
        number_text(pixels->shift),
        pixels->scale == 1.0f / 255.0f && pixels->shift == 0.0f ? " (that is byte / 255)" : "");
    all.push_back(features.empty() ? "The network takes images as " + numbers + ", " + shape +
                                         " (channels x height x width)."
                                   : "Images become " + numbers + ".");
  } else if (f.schema && !meta(files, "feature-names").empty()) {
    all.push_back(fmt::format(
        "{} one number for each name in the metadata feature-names, as schema.toml says: a number "
        "is clamped to its bounds and scaled to 0 to 1, by (x - min) / (max - min), or by "
        "log(1 + x - min) / log(1 + max - min) if transform is \"log\"; a category is 1 in the "
        "column of its value and 0 in the others. cudp export --to python writes a file that does "
        "this with numpy alone.",
        features.empty() ? "The network takes" : "A row becomes"));
  } else if (!meta(files, "words").empty() || !meta(files, "tokenizer").empty()) {
    all.emplace_back(
        "The network takes numbers of words, in the order of vocabulary.txt and after the marks "
        "that cudp's models/README.md describes. cudp predict turns texts into them.");
  } else if (features.empty()) {
    all.push_back("The network takes rows " + shape + ", as they were trained on.");
  }
  if (const std::string n = meta(files, "normalise"); !n.empty())
    all.push_back(n == "unit" ? "Each example is divided by its own Euclidean norm first."
                              : "Each example has its own mean subtracted, and is divided by its "
                                "own standard deviation, first.");
  if (!features.empty())
    all.push_back("The network takes features of kind " + features + ", " + shape +
                  ". cudp predict computes them.");
  if (!meta(files, "target-min").empty())
    all.push_back(
        fmt::format("The output z, clamped to -1 to 1, stands for {0} + (z + 1) / 2 * "
                    "({1} - {0}).",
                    meta(files, "target-min"), meta(files, "target-max")));
  return all;
}

/// Returns Python code that reads the weights with numpy and scales an input.
std::string numpy_code(const ReportFiles& files) {
  std::string code =
      "import numpy as np\n"
      "from safetensors.numpy import load_file  # pip install safetensors\n"
      "\n"
      "weights = load_file(\"model.safetensors\")  # names and layouts of PyTorch, float32\n";
  if (const auto pixels = read_inputs(*files.model, "model.safetensors").pixels)
    code += fmt::format("x = np.float32({}) * images + np.float32({})  # images: bytes, 0 to 255\n",
                        number_text(pixels->scale), number_text(pixels->shift));
  return code;
}

Section loading(const ReportFiles& files, const RunFacts& f) {
  Section s{.id = "load", .title = "How to load it", .blocks = {}};
  for (const std::string& sentence : input_of(files, f)) s.blocks.push_back(Paragraph{sentence});
  s.blocks.push_back(Paragraph{"With numpy:"});
  s.blocks.push_back(Code{.language = "python", .text = numpy_code(files)});
  if (const std::string code = torch_code(*files.model); !code.empty()) {
    s.blocks.push_back(Paragraph{"With PyTorch:"});
    s.blocks.push_back(Code{.language = "python", .text = code});
  } else {
    s.blocks.push_back(
        Paragraph{"With PyTorch: the tensors have the names and layouts of its layers, which the "
                  "metadata model of model.safetensors lists."});
    s.blocks.push_back(Code{.language = "python",
                            .text = "from safetensors.torch import load_file  # pip install "
                                    "safetensors\n\nweights = load_file(\"model.safetensors\")\n"});
  }
  page::Table table{.caption = "Tensors", .columns = {"name", "shape"}, .rows = {}};
  for (const ParameterTensor& t : files.model->tensors) {
    std::string shape;
    for (const int n : t.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(n);
    table.rows.push_back({t.name, shape});
  }
  s.blocks.push_back(table);
  return s;
}

Section promise_in_short(const RunFacts& f) {
  Section s{.id = "privacy", .title = "Privacy", .blocks = {in_short(f, Detail::card)}};
  s.blocks.push_back(Paragraph{
      "report.html has the whole promise, by the questions of NIST SP 800-226; PRIVACY.txt has the "
      "same sentences, and privacy.json the numbers. cudp verify checks them."});
  return s;
}

Section figures(const RunFacts& f) {
  Section s{.id = "figures", .title = "Figures", .blocks = {}};
  if (!f.has_figures()) {
    s.blocks.push_back(Paragraph{"No figures of public test rows: see report.html."});
    return s;
  }
  const Metrics& last = f.rows.back().test;
  page::Table table{.caption = "On public test rows", .columns = {"figure", "value"}, .rows = {}};
  for (std::size_t i = 0; i < last.values.size(); ++i) {
    const Metric& m = metrics(last.kind)[i];
    if (m.in_result) table.rows.push_back({m.name, m.text(last.values[i])});
  }
  s.blocks.push_back(table);
  return s;
}

/// Returns the name of a data set as model hubs accept it: every other character is replaced by
/// '-'.
std::string hub_name(const std::string& name) {
  std::string kept;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    kept += plain || c == '.' || c == '_' ? c : '-';
  }
  return kept;
}

/// Returns the model's task in the words of model hubs, e.g. "image-classification".
std::string task_of(const ReportFiles& files, PredictionKind kind) {
  if (kind == PredictionKind::target) return "tabular-regression";
  if (!meta(files, "pixel-scale").empty()) return "image-classification";
  return meta(files, "tokenizer").empty() ? "tabular-classification" : "text-classification";
}

constexpr std::string_view kMark = "---\n";

}  // namespace

page::Document model_card(const ReportFiles& files) {
  const RunFacts f = facts_of(files);
  page::Document d = headed(f.model.empty() ? "No model" : f.model + " on " + quoted(f.dataset), f);
  d.subtitle = f.model.empty() ? "Nothing was trained."
                               : "Trained with differential privacy by cudp, method " +
                                     f.setting("method") + ".";
  d.sections = {promise_in_short(f)};
  if (files.model) {
    d.sections.push_back(loading(files, f));
    d.sections.push_back(figures(f));
  }
  return d;
}

std::string front_matter_of(const ReportFiles& files) {
  const RunFacts f = facts_of(files);
  std::string s(kMark);
  if (const std::string licence = f.setting("license"); !licence.empty())
    s += "license: " + page::yaml(licence) + "\n";
  s += "library_name: cudp\ntags:\n- differential-privacy\n";
  if (f.certificate) s += "- " + page::yaml(f.setting("method")) + "\n";
  s += "datasets:\n- " + page::yaml(hub_name(f.dataset)) + "\n";
  if (f.has_figures() && !f.has_unpaid && !f.model.empty()) {
    const Metrics& last = f.rows.back().test;
    s += "model-index:\n- name: " + page::yaml(f.model) +
         "\n  results:\n  - task:\n      type: " + task_of(files, last.kind) +
         "\n    dataset:\n      type: " + page::yaml(hub_name(f.dataset)) +
         "\n      name: " + page::yaml(f.dataset) + "\n    metrics:\n";
    for (std::size_t i = 0; i < last.values.size(); ++i) {
      const Metric& m = metrics(last.kind)[i];
      if (!m.in_result || !std::isfinite(last.values[i])) continue;
      const std::string key = m.key;
      s += fmt::format("    - type: {}\n      name: {}\n      value: {:.6g}\n",
                       key == "test_accuracy" ? "accuracy" : key, m.name, last.values[i]);
    }
  }
  return s + std::string(kMark) + "\n";
}

SplitCard split_card(const std::string& card) {
  if (!card.starts_with(kMark)) return {.front_matter = {}, .body = card};
  const std::string end = "\n" + std::string(kMark);
  const std::size_t at = card.find(end, kMark.size() - 1);
  if (at == std::string::npos) return {.front_matter = {}, .body = card};
  std::size_t begin = at + end.size();
  if (begin < card.size() && card[begin] == '\n') ++begin;
  return {.front_matter = card.substr(0, begin), .body = card.substr(begin)};
}

}  // namespace cudp
