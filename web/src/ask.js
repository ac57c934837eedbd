// In server mode: a sentence in, what the model did with it out.
import { Component, html } from "./html.js";

export class Ask extends Component {
  async asked(event) {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const texts = String(form.get("text")).split("\n").map((text) => text.trim()).filter(Boolean);
    const target = String(form.get("target") ?? "").trim();
    this.setState({ busy: true, failed: "" });
    try {
      const answer = await window.fetch("api/inspections", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ texts, target: target || null }),
      });
      const found = await answer.json();
      if (!answer.ok) throw new Error(found.error ?? `the server answered ${answer.status}`);
      this.setState({ busy: false });
      this.props.found(found);
    } catch (error) {
      this.setState({ busy: false, failed: String(error.message || error) });
    }
  }
  render({ pairs }) {
    const { busy, failed } = this.state;
    const second = pairs ? "Second text, of a pair in one sequence" : "Output, if it is not the model that should find it";
    return html`<form class="ask" onsubmit=${(event) => this.asked(event)}>
      <label><span>Text</span><textarea name="text" rows="2" dir="auto" required placeholder="a sentence; a second line is compared with it"></textarea></label>
      <label><span>${second}</span><input name="target" dir="auto" autocomplete="off" /></label>
      <button type="submit" disabled=${busy}>${busy ? "Looking …" : "Look inside"}</button>
      ${failed && html`<p class="failed" role="alert">${failed}</p>`}
    </form>`;
  }
}
