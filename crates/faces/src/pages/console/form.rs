//! Fields of forms: labels, help, what was filled in, and what is wrong with it.

use std::fmt;

use askama::filters::HtmlSafe;
use axum::{http::StatusCode, response::Response};
use portcullis_core::authorization::OAuthForm;

use super::{api::Problem, json::Json, signed_in::Guest};
use crate::pages::{
    form::Form,
    html::{Html, html, markup},
};

/// Text of the program; attributes and help are markup.
type Word = &'static str;

/// Values that were filled in to a form, and why it was refused.
#[derive(Debug, Default)]
pub(super) struct FormState {
    values: Option<OAuthForm>,
    pub(super) problem: Option<Problem>,
}

/// How a field is filled in.
#[derive(Debug, Clone, Copy)]
pub(super) enum Control {
    Line,
    /// A line that is not shown, and that no page sends again.
    Secret,
    Area,
    /// One of these values, each with its name.
    Choice(&'static [(Word, Word)]),
}

/// A field of a form, as a template shows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field<'a> {
    values: Option<&'a OAuthForm>,
    problem: Option<&'a Problem>,
    name: Word,
    label: Word,
    control: Control,
    preset: Word,
    required: bool,
    attributes: Word,
    help: Word,
    /// Name that the API has for it.
    member: Word,
    /// The label is in front of it.
    is_inline: bool,
}

impl FormState {
    /// A form with what a person filled in.
    pub(super) fn of(form: &Form) -> Self {
        Self { values: Some(form.0.clone()), problem: None }
    }

    /// A form with what a person filled in, and why it was refused, if it was.
    pub(super) fn refused(form: &Form, problem: Option<Problem>) -> Self {
        Self { problem, ..Self::of(form) }
    }

    /// The reason that the form was refused, which is looked at first.
    pub(super) fn alert(&self) -> Html {
        let Some(Problem { message, code, .. }) = &self.problem else { return Html::default() };
        html(
            "<div class=\"notice bad\" role=\"alert\" tabindex=\"-1\" autofocus><p><strong>{}</strong> \
             <code>{}</code></p></div>",
            &[message, code],
        )
    }

    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.values.as_ref().is_some_and(|it| it.get(name) == Some(value))
    }

    pub(super) fn status(&self) -> StatusCode {
        self.problem.as_ref().map_or(StatusCode::OK, |problem| problem.status)
    }

    pub(super) fn line(&self, name: Word, label: Word) -> Field<'_> {
        Field::new(self, name, label, Control::Line)
    }

    pub(super) fn secret(&self, name: Word, label: Word) -> Field<'_> {
        Field::new(self, name, label, Control::Secret)
    }

    pub(super) fn area(&self, name: Word, label: Word) -> Field<'_> {
        Field::new(self, name, label, Control::Area)
    }

    pub(super) fn choice(
        &self,
        name: Word,
        label: Word,
        all: &'static [(Word, Word)],
    ) -> Field<'_> {
        Field::new(self, name, label, Control::Choice(all))
    }
}

impl<'a> Field<'a> {
    fn new(state: &'a FormState, name: Word, label: Word, control: Control) -> Self {
        let FormState { values, problem } = state;
        let (values, problem) = (values.as_ref(), problem.as_ref());
        Self { problem, is_inline: false, ..Self::filter(values, name, label, control) }
    }

    /// A filter of a list.
    pub(super) fn filter(
        values: Option<&'a OAuthForm>,
        name: Word,
        label: Word,
        control: Control,
    ) -> Self {
        let [preset, attributes, help, member] = ["", "", "", name];
        let (problem, required, is_inline) = (None, false, true);
        Self {
            values,
            problem,
            name,
            label,
            control,
            preset,
            required,
            attributes,
            help,
            member,
            is_inline,
        }
    }

    /// A field with its label in front of it, as filters have.
    pub(super) fn inline(self) -> Self {
        Self { is_inline: true, ..self }
    }

    pub(super) fn required(self) -> Self {
        Self { required: true, ..self }
    }

    pub(super) fn preset(self, preset: Word) -> Self {
        Self { preset, ..self }
    }

    pub(super) fn with(self, attributes: Word) -> Self {
        Self { attributes, ..self }
    }

    pub(super) fn help(self, help: Word) -> Self {
        Self { help, ..self }
    }

    pub(super) fn member(self, member: Word) -> Self {
        Self { member, ..self }
    }

    /// Message of the API about the field.
    fn wrong(&self) -> Html {
        let path = format!("/{}", self.member);
        let violations = self.problem.map(|it| it.details.items("/violations")).unwrap_or_default();
        let show = |it: &Json| {
            let error = "<small class=\"error\" id=\"wrong-{}\">{}</small>";
            html(error, &[&self.name, &it.text("/message")])
        };
        violations.iter().find(|it| it.is("/path", &path)).map(show).unwrap_or_default()
    }

    fn control(&self, wrong: &Html) -> Html {
        let Self { name, required, attributes, .. } = self;
        let value = self.values.map_or(self.preset, |it| it.get(name).unwrap_or_default());
        let is_wrong = " aria-invalid=\"true\" aria-describedby=\"wrong-{}\"";
        let attributes = Html::from([
            html(if attributes.is_empty() { "{}" } else { " {}" }, &[&markup(attributes)]),
            markup(if *required { " required" } else { "" }),
            if wrong.is_empty() { Html::default() } else { html(is_wrong, &[name]) },
        ]);
        match self.control {
            Control::Line => {
                html("<input name=\"{}\" value=\"{}\"{}>", &[name, &value, &attributes])
            }
            Control::Secret => {
                let secret =
                    "<input name=\"{}\" type=\"password\" autocomplete=\"new-password\"{}>";
                html(secret, &[name, &attributes])
            }
            // The first line feed is the browser's.
            Control::Area => {
                html("<textarea name=\"{}\"{}>\n{}</textarea>", &[name, &attributes, &value])
            }
            Control::Choice(all) => {
                let option = |(own, text): &(Word, Word)| {
                    let selected = markup(if *own == value { " selected" } else { "" });
                    html("<option value=\"{}\"{}>{}</option>", &[own, &selected, text])
                };
                let options: Html = all.iter().map(option).collect();
                html("<select name=\"{}\"{}>{}</select>", &[name, &attributes, &options])
            }
        }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = self.wrong();
        let control = self.control(&wrong);
        if self.is_inline {
            return html("<label>{} {}</label>", &[&self.label, &control]).fmt(f);
        }
        let star = markup(if self.required { " <b title=\"required\">*</b>" } else { "" });
        let help = if self.help.is_empty() { "{}" } else { "<small>{}</small>" };
        let help = html(help, &[&markup(self.help)]);
        let field = "<label><span>{}{}</span>{}{}{}</label>";
        html(field, &[&self.label, &star, &control, &help, &wrong]).fmt(f)
    }
}

/// A field is made of markup.
impl HtmlSafe for Field<'_> {}

impl Guest {
    /// The form that was refused, as it comes back; or the way to a proof that the person lacks.
    pub(super) fn refuse(&self, form: &Form, problem: Problem) -> Result<FormState, Response> {
        match self.step_up_of(&problem) {
            Some(forwarded) => Err(forwarded),
            None => Ok(FormState::refused(form, Some(problem))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refused_form_comes_back_with_what_was_sent_and_what_is_wrong() {
        let violations = json!([{"path": "/expires_in", "message": "has to be <b>"}]);
        let details = Json(json!({ "violations": violations }));
        let problem = Some(Problem { details, ..Problem::default() });
        let sent = Form::of([("days", "soon\""), ("role", "b"), ("key", "secret")]);
        let state = FormState { problem, ..FormState::of(&sent) };
        let empty = FormState::default();

        for (field, expected) in [
            (
                state.line("days", "Days").required().member("expires_in"),
                "<label><span>Days <b title=\"required\">*</b></span><input name=\"days\" value=\"soon&quot;\" \
                 required aria-invalid=\"true\" aria-describedby=\"wrong-days\"><small class=\"error\" \
                 id=\"wrong-days\">has to be &lt;b&gt;</small></label>",
            ),
            (
                state.choice("role", "Role", &[("a", "A"), ("b", "B")]),
                "<label><span>Role</span><select name=\"role\"><option value=\"a\">A</option>\
                 <option value=\"b\" selected>B</option></select></label>",
            ),
            (
                state.secret("key", "Key"),
                "<label><span>Key</span><input name=\"key\" type=\"password\" autocomplete=\"new-password\">\
                 </label>",
            ),
            (
                empty.area("text", "Text").preset("x").with("rows=\"2\"").help("a <i>b</i>"),
                "<label><span>Text</span><textarea name=\"text\" rows=\"2\">\nx</textarea>\
                 <small>a <i>b</i></small></label>",
            ),
        ] {
            assert_eq!(field.to_string(), expected);
        }
    }
}
