import{createRequire as createRequireOfNode}from'node:module';const require=createRequireOfNode(import.meta.url);
var t="command";function o(s){if(s.uses==="command")return t;if(s.base_url===void 0)return s.uses;let e=/^[a-z][a-z0-9+.-]*:\/\/(?:[^/?#@]*@)?([^/?#]+)/i.exec(s.base_url)?.[1]??"";return e===""?s.uses:`${s.uses}@${e.toLowerCase()}`.slice(0,60)}export{o as a};
