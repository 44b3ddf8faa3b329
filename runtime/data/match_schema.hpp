#pragma once
#include <string>

#include "runtime/data/schema.hpp"

namespace cudp {

/// Returns the schema with which to read a table that a trained model scores. It is `given`, the
/// table's own schema, with missing parts taken from `trained`, the schema of the model's training
/// data. Both must give the same features and classes for the same cells. They may differ in the
/// format of the file (delimiter, header, missing texts, date format, suffixes of labels), in
/// columns that give no feature, and in whether unknown categories are an error. source: name of
/// `given` in messages. model: name of the model. Throws InputError in one line, "SOURCE, column
/// 'age': expected bounds 17 to 90, ..., found ...", on the first difference.
TableSchema matched_schema(const TableSchema& trained, const TableSchema& given,
                           const std::string& source, const std::string& model);

}  // namespace cudp
