#pragma once
#include <string>

#include "runtime/report/document.hpp"
#include "runtime/report/files.hpp"

namespace cudp {

/// Version of the format of a run's report pages; the run's certificate states it in its field
/// `pages`. Increase it with every change of the code that changes a byte of a page, so that `cudp
/// verify` compares pages only if they have the same format.
inline constexpr int kPagesFormat = 5;

/// Returns the report of a run: the privacy guarantee in words, the questions of NIST SP 800-226
/// with their answers, curves, data, settings, and how to check the run. A function of `files`
/// alone. Throws InputError if a file is damaged.
page::Document privacy_report(const ReportFiles& files);

/// Returns the model card without its YAML header: the privacy guarantee in words, and how to load
/// the weights. A function of `files` alone. Throws InputError if a file is damaged.
page::Document model_card(const ReportFiles& files);

/// Texts of the three pages in a run's folder release/: the report, the privacy statement, and the
/// model card (here without its YAML header). Each is a function of the other files in that folder.
struct Pages {
  std::string report, privacy, card;
};

/// Makes the three pages for a run's folder release/ (report, privacy statement, model card) from
/// the contents of the run's files. Throws InputError if a file is damaged.
Pages make_pages(const ReportFiles& files);

/// Returns the YAML header (front matter) of a new model card, in the form that model hubs such as
/// Hugging Face expect: the licence that the settings state, tags, the data set's name, and metrics
/// of public test rows. The user may edit this header in README.md.
std::string front_matter_of(const ReportFiles& files);

/// A model card (README.md) split into its YAML front matter and the text.
struct SplitCard {
  /// The YAML header at the start of the model card, including its lines "---" and the empty line
  /// after it; "" if there is none.
  std::string front_matter;
  std::string body;
};
SplitCard split_card(const std::string& card);

}  // namespace cudp
